"""Statistics that know nothing of memory: arrays in, numbers out."""

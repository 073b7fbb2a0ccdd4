"""Statistics without any knowledge of memory: arrays in, numbers out."""

"""Numbers, names and sentences."""

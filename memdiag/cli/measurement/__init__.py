"""A running measurement, for `run` and `watch`."""

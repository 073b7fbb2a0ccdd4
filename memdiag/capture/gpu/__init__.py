"""Device memory of the process tree."""

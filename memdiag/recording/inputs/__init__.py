"""From a path or standard input to clean bytes and lines."""

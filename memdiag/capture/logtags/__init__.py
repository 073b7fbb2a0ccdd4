"""Steps and phases from a log."""

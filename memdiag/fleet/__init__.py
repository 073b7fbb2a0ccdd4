"""Many recordings: judged by the workers of an engine, kept in a file of results."""

"""Turns a command line into one call, one rendering and one exit code."""

"""Extracts a table from the free text of a training log."""

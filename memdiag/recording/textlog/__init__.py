"""From the free text of a training log to a table."""

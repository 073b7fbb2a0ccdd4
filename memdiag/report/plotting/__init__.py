"""The plot in characters."""

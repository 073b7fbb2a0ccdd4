"""The hinge: recordings and foreign logs, written and read."""

"""Pure renderers of a finished diagnosis."""

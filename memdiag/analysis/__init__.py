"""Pure functions from recorded values to a diagnosis."""

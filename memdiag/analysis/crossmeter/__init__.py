"""What several series of one recording say together: evidence and origin of a leak."""

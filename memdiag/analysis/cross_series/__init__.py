"""What several series of one recording show together: evidence and the kind of leak."""

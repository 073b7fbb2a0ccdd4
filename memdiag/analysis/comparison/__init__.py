"""Two sets of recordings, before and after a change."""

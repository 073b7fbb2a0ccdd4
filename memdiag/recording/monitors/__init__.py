"""Output of system and GPU monitors."""

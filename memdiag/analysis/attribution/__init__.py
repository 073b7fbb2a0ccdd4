"""Which phase, which event and which known size the growth belongs to."""

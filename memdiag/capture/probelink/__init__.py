"""The channel to the probe, and why there is none."""

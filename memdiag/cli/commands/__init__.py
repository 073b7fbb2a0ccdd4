"""The commands: signature and call."""

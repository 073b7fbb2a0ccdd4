"""Touches the operating system: starts or adopts the target and reads numbers off the machine."""

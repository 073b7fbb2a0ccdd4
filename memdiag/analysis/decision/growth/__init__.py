"""Checks that object to growth being called a leak."""

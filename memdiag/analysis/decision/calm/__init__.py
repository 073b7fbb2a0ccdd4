"""Checks that argue for or against calm: one module each."""

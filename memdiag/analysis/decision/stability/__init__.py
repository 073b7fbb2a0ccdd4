"""Checks that argue for or against STABLE and WARMUP."""

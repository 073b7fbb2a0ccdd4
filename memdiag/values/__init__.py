"""Values that both halves share: measurements, verdicts, findings, sizes; no input or output."""

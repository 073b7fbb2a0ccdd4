"""Reports, output files and the exit code."""

"""The output formats, one file each."""

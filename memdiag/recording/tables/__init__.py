"""From columns to a recording: dialect, axis, processes."""

"""Where `--to` sends a measurement while it runs: trackers and monitoring systems."""

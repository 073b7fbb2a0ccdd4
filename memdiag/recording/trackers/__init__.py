"""Files of experiment trackers and of torch."""

"""Drawing pictures: in characters, and as images."""

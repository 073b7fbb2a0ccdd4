"""What the series of one recording say to each other, and which of them speaks for it."""

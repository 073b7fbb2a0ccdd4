"""From a recorded series to the values that are judged."""

"""What is drawn of a finding or a comparison, decided once for every kind of picture."""

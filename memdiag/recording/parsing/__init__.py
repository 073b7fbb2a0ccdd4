"""What a cell and a column name mean."""

"""What keeps the memory that leaks: the places in the program that grow, with their lines."""

"""Starting the command, its signals and its output."""

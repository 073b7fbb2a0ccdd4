"""Where growth is looked for: each module proposes one kind of window."""

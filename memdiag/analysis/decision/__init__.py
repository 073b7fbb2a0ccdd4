"""One decision: windows propose growth, checks object or argue, a table of precedence decides."""

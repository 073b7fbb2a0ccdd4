"""Options, configuration and the CI gate."""

"""The process tree and its host memory."""

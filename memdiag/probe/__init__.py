"""What runs inside the target: standard library only, loaded by path, imports nothing of memdiag."""

"""What runs inside the target: standard library only, imports nothing of memdiag.

The target loads this directory by its path, under the package name `_memdiag_probe`
(`inject/sitecustomize.py` does it), so it works in environments without memdiag. Hence:
relative imports only, the syntax of Python 3.8, and nothing at start-up that costs.
"""

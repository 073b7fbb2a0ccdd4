"""The part that runs inside the target: standard library only, no imports from memdiag.

The target loads this directory by its path, under the package name `_memdiag_probe`
(see `inject/sitecustomize.py`), so it works in environments without memdiag. Hence: relative
imports only, the syntax of Python 3.8, and nothing expensive at startup. The package is flat
because each level of sub-packages costs 0.1 ms at every start of an interpreter.
"""

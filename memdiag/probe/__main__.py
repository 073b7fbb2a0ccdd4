"""`python -m memdiag.probe` prints the directory that loads the probe into Python programs.

Programs with `PYTHONPATH=$(python -m memdiag.probe)` in their environment can be watched by
`memdiag watch --pid` as if `memdiag run` had started them.
"""

from .arm import INJECTED

print(INJECTED)

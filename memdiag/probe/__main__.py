"""`python -m memdiag.probe` prints the directory that arms Python programs from outside.

With `PYTHONPATH=$(python -m memdiag.probe)` in their environment, programs can be watched by
`memdiag watch --pid` as if `memdiag run` had started them.
"""

from .arming import INJECTED

print(INJECTED)

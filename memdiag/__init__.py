"""memdiag: is the growing memory of a training a warm-up or a leak, and whose fault is it?

A training script may call `memdiag.step(n)`, `memdiag.phase("eval")` and
`memdiag.counter("model_copies", n)`. They cost next to nothing and do nothing at all when
memdiag is not watching. Importing this package imports nothing else.
"""

from memdiag.tags import counter, phase, step

__version__ = "0.1.0"
__all__ = ["__version__", "counter", "phase", "step"]

"""The modules that read files, imported when a command needs them."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

# What polars' allocator has freed goes back to the system soon: on a large file, half of the peak
# were pages that nobody used any more (`benchmarks/speed.py`). At once would cost more time, for
# pages that come and go. Only for commands that start no program, which would inherit it.
_ALLOCATOR = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:100,muzzy_decay_ms:100")
# Numpy's linear algebra starts a thread per core when it is imported: a fifth of the import's time,
# and in a container a part of the number of processes allowed. Nothing here multiplies matrices.
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """Import numpy without threads of its own. The environment, which programs that are started
    inherit, is afterwards as it was."""
    if "numpy" in sys.modules or _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[_BLAS_THREADS]


def reading() -> ModuleType:
    """`memdiag.recording.read`."""
    import_numpy()
    os.environ.setdefault(*_ALLOCATOR)
    return importlib.import_module("memdiag.recording.read")

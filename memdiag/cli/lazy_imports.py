"""The modules that read files, imported when a command needs them."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

# Makes the allocator of polars release freed pages soon: on a large file, unused pages were half of
# the peak (`benchmarks/speed.py`). Releasing them at once would take more time. Only for commands
# that do not start a program, which would inherit the variable.
_ALLOCATOR = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:100,muzzy_decay_ms:100")
# The linear algebra of numpy starts a thread per core on import: a fifth of the import time, and
# they count against the pids limit of a container. memdiag does not multiply matrices.
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """Import numpy without its threads. The environment, which started programs inherit, stays as
    it was."""
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

"""The modules that read files, imported when a command needs them."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

# What polars' allocator has freed goes back to the system at once: on a large file, half of the
# peak were pages that nobody used any more (`benchmarks/speed.py`). Only for commands that start
# no program, which would inherit it.
_ALLOCATOR = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:100,muzzy_decay_ms:100")


def reading() -> ModuleType:
    """`memdiag.recording.reading`."""
    os.environ.setdefault(*_ALLOCATOR)
    return importlib.import_module("memdiag.recording.reading")

"""Starts and ends `tracemalloc` in a process with threads that Python may not know of.

Before CPython 3.12.9 and 3.13.2, `tracemalloc.stop` ends the process if another thread is in the
hook of an allocation and waits for the GIL there (python/cpython#128679): threads of gloo are, in
each job with several ranks. There the hooks are taken out first, then others get the GIL, and only
then tracing stops.
"""

from __future__ import annotations

import sys
from time import sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = sys.version_info[:3]
_MAY_STOP_AT_ONCE = _VERSION >= (3, 13, 2) or (3, 12, 9) <= _VERSION < (3, 13)
_DOMAINS = 3  # raw memory, memory and objects: PyMemAllocatorDomain
# How often the GIL is given up for another thread, and for how long. Heuristic: one that waits
# for it gets it soon.
_TIMES, _PAUSE_S = 20, 0.001


class AllocationTracing:
    """Tracing from now on until `stop`. Raises if the program traces already."""

    def __init__(self, frames: int) -> None:
        """frames: how many of a stack are kept."""
        import tracemalloc

        if tracemalloc.is_tracing():
            raise RuntimeError
        self.module = tracemalloc
        self._hooks = None if _MAY_STOP_AT_ONCE else _Hooks()
        tracemalloc.start(frames)
        if self._hooks is not None:
            self._hooks.are_set()

    def stop(self) -> None:
        """Trace no more, and forget what was traced."""
        if self._hooks is not None:
            self._hooks.take_out()
            self.module.clear_traces()
            for _ in range(_TIMES):
                sleep(_PAUSE_S)
        self.module.stop()


class _Hooks:
    """Python's allocators as they were before. Raises where they cannot be read."""

    def __init__(self) -> None:
        import ctypes

        class Allocator(ctypes.Structure):
            """PyMemAllocatorEx of CPython's cpython/pymem.h."""

            _fields_ = [
                (name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")
            ]

        python = ctypes.PyDLL(None)  # (not ctypes.pythonapi, which the program may use)
        self._allocator, self._reference = Allocator, ctypes.byref
        self._get, self._set = python.PyMem_GetAllocator, python.PyMem_SetAllocator
        for function in (self._get, self._set):
            function.argtypes = [ctypes.c_int, ctypes.POINTER(Allocator)]
            function.restype = None
        self._before = self._now()
        self._traced: list[Any] = []

    def are_set(self) -> None:
        """Tracing has begun."""
        self._traced = self._now()

    def take_out(self) -> None:
        """Allocate as before, unless another tool has set hooks since."""
        if list(map(bytes, self._now())) == list(map(bytes, self._traced)):
            for domain, allocator in enumerate(self._before):
                self._set(domain, self._reference(allocator))

    def _now(self) -> list[Any]:
        found = [self._allocator() for _ in range(_DOMAINS)]
        for domain, allocator in enumerate(found):
            self._get(domain, self._reference(allocator))
        return found

"""Frees memory a few times in a run, on request, and records what came back and what it cost.

The free memory that malloc holds, Python's cycles, and torch's cache of device memory are freed one
after the other, after a step, in the main thread. What none of them returns is still in use.
"""

from __future__ import annotations

import gc
import sys
from time import monotonic

from . import ring_format
from .framework_allocators import ReadAt
from .guard import Attempts, never_raises, ours
from .line_windows import is_program_thread
from .main_thread import MainThreadCall
from .process_metrics import MallocInUse, ResidentSize, malloc_bytes, python_blocks
from .ring_format import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict

    from .session import Session

    Values = Dict[str, int]

VERSION = 1
# The first after this time, each next at this multiple of the time since the start: the memory that
# has gathered in between differs, and a run of a day has eight. Heuristic.
_FIRST_S, _TIMES = 2.0, 4.0
# Share of the time for all of them, and what the first may take beyond it: a collection of many
# objects takes seconds. Heuristic.
_SHARE, _CREDIT_S = 0.01, 2.0
_MOST = 64
_FROM_ALLOCATORS = ("allocated_bytes", "reserved_bytes")


class Interventions:
    """The interventions in one process. `tick` never raises."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._attempts = Attempts()
        self._main_thread = MainThreadCall(self.tick)
        self._resident = ResidentSize()
        self._blocks = python_blocks()
        self._malloc: MallocInUse | None = None
        self._done: list[dict[str, Any]] = []
        self._began_s = self._due_s = self._spent_s = 0.0

    @never_raises
    def tick(self) -> None:
        """Intervene if it is due, in the main thread. Called after a step, in its thread."""
        try:
            now_s = monotonic()
            if now_s < self._due_s or not self._attempts.may_begin():
                return
            if not self._session.is_in_main_thread():
                if not is_program_thread():  # iterations are counted by the probe's thread
                    self._main_thread.request()
                return
            if not self._began_s:
                self._begin(now_s)
                return
            self._intervene()
            now_s = monotonic()
            age_s = now_s - self._began_s
            enough_s = (self._spent_s - _CREDIT_S) / _SHARE
            self._due_s = self._began_s + max(_TIMES * age_s, enough_s)
            self._attempts.is_over = len(self._done) >= _MOST
        except ours(Exception) as error:
            if self._attempts.failed(error):
                text = f"an intervention failed ({type(error).__name__})"
                self._session.note(text, "interventions")

    def after_fork_in_child(self) -> None:
        """A child process does not intervene: it mostly shares its memory with its parent."""
        self.close()

    @never_raises
    def at_exit(self) -> None:
        """The program has ended."""
        if not self._done and not self._attempts.is_over:
            text = "none: no step ended in the main thread two seconds after the first"
            self._session.note(text, "interventions")

    def close(self) -> None:
        """Intervene no more."""
        self._main_thread.close()
        self._attempts.is_over = True

    def _begin(self, now_s: float) -> None:
        self._began_s, self._due_s = now_s, now_s + _FIRST_S
        found = malloc_bytes()
        self._malloc = None if isinstance(found, str) else found

    def _intervene(self) -> None:
        trim = None if self._malloc is None else _malloc_trim()
        actions: list[tuple[str, Callable[[], Any] | None]] = [
            ("malloc_trim", trim),
            ("gc_collect", gc.collect),
            ("empty_cache", _empty_cache()),
        ]
        for name, free in actions:
            if free is None:
                continue
            before, began_s = self._read(), monotonic()
            free()
            took_s = monotonic() - began_s
            self._spent_s += took_s
            done = {"action": name, "at_s": began_s, "step": self._session.step_now()}
            self._done.append({**done, "took_s": took_s, "before": before, "after": self._read()})
        if trim is not None:
            trim()  # else the next one would return what this collection has freed
        self._write()

    def _read(self) -> Values:
        values = {"rss_bytes": self._resident()}
        if self._blocks is not None:
            values["python_blocks"] = self._blocks()
        if self._malloc is not None:
            values["malloc_bytes"] = self._malloc()
            values["malloc_free_bytes"] = self._malloc.free_bytes
        for name, readings in self._session.schedule.allocators.read(ReadAt.EXIT).items():
            for reading in _FROM_ALLOCATORS:
                values[f"{name}_{reading}"] = readings.get(reading, ABSENT)
        return {name: value for name, value in values.items() if value != ABSENT}

    def _write(self) -> None:
        import json

        document = {"version": VERSION, "began_s": self._began_s, "done": self._done}
        data = json.dumps(document).encode("ascii")
        self._session.write_beside(data, ring_format.INTERVENTIONS_SUFFIX)


def _empty_cache() -> Callable[[], Any] | None:
    """A function that returns the free device memory of torch's caches, None if none is in use."""
    torch = sys.modules.get("torch")
    backends: list[Any] = [getattr(torch, name, None) for name in ("cuda", "xpu")]
    used = [one for one in backends if hasattr(one, "empty_cache") and one.is_initialized()]
    return (lambda: [one.empty_cache() for one in used]) if used else None


def _malloc_trim() -> Callable[[], Any] | None:
    """A function that returns free memory of malloc to the system, None without glibc."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if trim is None else (lambda: trim(ctypes.c_size_t(0)))

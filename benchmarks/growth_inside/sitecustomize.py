"""Loaded by each Python of a program of `fixtures/programs/leaks` that a benchmark starts.

What it does is in the environment: GROWTH_DOES is "read" (what malloc and Python's allocator have
in use, ten times a second, with the step), "tracemalloc" (the difference of two snapshots) or
"objgraph" (the types that grew between two steps). GROWTH_FOLDER is where that is written,
GROWTH_STEPS how many steps there will be. The program calls `count_step()`, which culprits.py puts
at the marked loop.
"""

from __future__ import annotations

import abc
import builtins
import ctypes
import io
import json
import mmap
import os
import re
import sys
import threading
import tracemalloc
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["GROWTH_FOLDER"])
DOES = os.environ["GROWTH_DOES"]
STEPS = int(os.environ["GROWTH_STEPS"])
FIRST, SECOND = 0.4, 0.95  # of the steps: when the two looks are taken
PAUSE_S = 0.02
STEPS_APART = 4
FRAMES = 20
MOST_NAMED = 10
_ALLOCATED = re.compile(rb"# bytes in allocated blocks\s*=\s*([\d,]+)")


class Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


class Reader:
    """Writes a line "step bytes" for each reading into a file of this process."""

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None)
        self.libc.mallinfo2.restype = Mallinfo
        self.statistics = os.memfd_create("statistics")
        with (FOLDER / "steps").open("r+b") as shared:
            self.step = mmap.mmap(shared.fileno(), 8)  # of the process whose loop is marked
        self.steps = 0
        os.register_at_fork(after_in_child=self.start)
        self.start()

    def start(self) -> None:
        threading.Thread(target=self.read_often, daemon=True).start()

    def count_step(self) -> None:
        self.steps += 1
        self.step[:8] = self.steps.to_bytes(8, "little")
        if self.steps % STEPS_APART == 0:  # always at the same point of a step
            self.read()

    def read_often(self) -> None:
        """In processes that take no steps of their own, workers for example."""
        pause = threading.Event()
        while not pause.wait(PAUSE_S) and not self.steps:
            self.read()

    def read(self) -> None:
        step = int.from_bytes(self.step[:8], "little")
        with (FOLDER / f"{os.getpid()}.txt").open("a") as readings:
            readings.write(f"{step} {self.in_use_bytes()}\n")

    def in_use_bytes(self) -> int:
        found = self.libc.mallinfo2()
        return int(found.uordblks + found.hblkhd) + self.blocks_bytes()

    def blocks_bytes(self) -> int:
        """What CPython writes of its own allocator goes to the error stream only."""
        os.ftruncate(self.statistics, 0)
        os.lseek(self.statistics, 0, os.SEEK_SET)
        stream = os.dup(2)
        os.dup2(self.statistics, 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(stream, 2)
            os.close(stream)
        os.lseek(self.statistics, 0, os.SEEK_SET)
        size = _ALLOCATED.search(os.read(self.statistics, 1 << 20))
        return int(size[1].replace(b",", b"")) if size else 0


class Differ(abc.ABC):
    """Takes a look at two steps and writes what lies between them."""

    def __init__(self) -> None:
        self.steps = 0

    def count_step(self) -> None:
        self.steps += 1
        if self.steps == int(FIRST * STEPS):
            self.first()
        elif self.steps == int(SECOND * STEPS):
            (FOLDER / "named.json").write_text(json.dumps(self.second()))

    @abc.abstractmethod
    def first(self) -> None:
        """Look."""

    @abc.abstractmethod
    def second(self) -> Any:
        """Look again; what lies between the two, for JSON."""


class Tracemalloc(Differ):
    def count_step(self) -> None:
        if not self.steps:  # what the imports took is none of the growth
            tracemalloc.start(FRAMES)
        super().count_step()

    def first(self) -> None:
        self.before = tracemalloc.take_snapshot()

    def second(self) -> Any:
        """What each stack grew by, innermost frame first."""
        found = tracemalloc.take_snapshot().compare_to(self.before, "traceback")
        stacks = ([[f.filename, f.lineno] for f in reversed(one.traceback)] for one in found)
        return {"diff": list(zip(stacks, (one.size_diff for one in found), strict=True))}


class Objgraph(Differ):
    def first(self) -> None:
        import_module("objgraph").show_growth(limit=MOST_NAMED, file=io.StringIO())

    def second(self) -> Any:
        """The types that grew most."""
        return [row[0] for row in import_module("objgraph").growth(limit=MOST_NAMED)]


_DOERS: dict[str, type[Reader] | type[Differ]] = {
    "read": Reader,
    "tracemalloc": Tracemalloc,
    "objgraph": Objgraph,
}
setattr(builtins, "count_step", _DOERS[DOES]().count_step)  # noqa: B010

"""Loops of the program: the iterations of each, and which loop's iterations are the steps."""

from __future__ import annotations

import os

from .guard import ours
from .installed import STANDARD_LIBRARY, package_folder
from .program_code import is_users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType

# How long an iteration should take: long enough to be worth a record, and short enough for 30 of
# them in the 30 s that a verdict may take. Heuristic.
_SHORT_S, _LONG_S, _LONGEST_S = 0.005, 1.0, 60.0
# Shorter iterations are not counted, but checked again later. Heuristic: counting takes 1 us each.
HOT_S = 0.0002
_WINDOW = 16
# Steps may be shorter for this many windows (batches that a resumed run skips). Heuristic.
_WINDOWS_OF_STEPS = 64
# (shortest duration, longest duration, minimum of iterations), the best kind first.
_KINDS = ((_SHORT_S, _LONG_S, 3), (HOT_S, _SHORT_S, 8), (_LONG_S, _LONGEST_S, 2))
# A loop has ended after this long with neither an iteration nor a sample inside it. Heuristic.
ENDED_AFTER_S = 3.0
# Owners of loops, the highest priority first.
BAR, OWN, LIBRARY = 0, 1, 2
# The part of a path that fits into a note.
_PLACE_CHARACTERS = 30


class Loop:
    """One loop. The thread that runs it counts the iterations; another thread reads the count.

    head, end: offsets of the first instruction, and of the last jump back to it so far.
    n, extra: iterations counted here, and in loops that were merged into this one.
    n_before: iterations at the last sample of the stack.
    active_s: when a sample of the stack was last inside the loop.
    is_hot: the iterations are too short to count.
    into: the loop that this one was merged into, because it is another head of the same loop.
    on_iteration: called after each iteration, if the iterations of this loop are the steps.
    total: number of iterations in all, 0 if unknown.
    """

    __slots__ = (
        "active_s",
        "began_s",
        "code",
        "depth",
        "duration_s",
        "end",
        "extra",
        "head",
        "into",
        "is_hot",
        "last_s",
        "n",
        "n_before",
        "on_iteration",
        "owner",
        "short",
        "thread",
        "total",
        "what",
        "window_s",
    )

    def __init__(self, code: CodeType, head: int, depth: int, thread: int, owner: int) -> None:
        self.code, self.head, self.end = code, head, head
        self.depth, self.thread, self.owner = depth, thread, owner
        self.n = self.n_before = self.extra = self.short = self.total = 0
        self.began_s = self.last_s = self.active_s = self.window_s = 0.0
        self.duration_s = [float("inf")] * _WINDOW
        self.is_hot = False
        self.what = "iterations of the loop"
        self.into: Loop | None = None
        self.on_iteration: Callable[[Loop, float], None] | None = None

    def count(self, now_s: float) -> bool:
        """Count an iteration that has ended. Return True if they are too short to count."""
        try:
            n, on_iteration = self.n + 1, self.on_iteration
            duration_s, self.n, self.last_s = now_s - self.last_s, n, now_s
            if n > 1:
                self.duration_s[(n - 2) % _WINDOW] = duration_s
            else:
                self.began_s = now_s
            if n % _WINDOW == 1:
                if now_s - self.window_s >= HOT_S * _WINDOW:
                    self.short, self.is_hot = 0, False
                else:
                    self.short += 1
                    self.is_hot = on_iteration is None or self.short >= _WINDOWS_OF_STEPS
                self.window_s = now_s
        except ours(Exception):
            return True
        if on_iteration is not None:
            on_iteration(self, now_s)
        return self.is_hot

    def advance(self, by: int, now_s: float) -> None:
        """Count iterations that have ended since the last call, at first since `began_s`."""
        each_s = (now_s - (self.last_s or self.began_s)) / by
        for n in range(self.n, self.n + min(by, _WINDOW)):
            self.duration_s[n % _WINDOW] = each_s
        self.n, self.last_s = self.n + by, now_s
        if self.on_iteration is not None:
            self.on_iteration(self, now_s)

    def period_s(self) -> float:
        """The median duration of the last iterations."""
        known = sorted(self.duration_s[: max(0, self.n - 1)])
        return known[(len(known) - 1) // 2] if known else float("inf")

    def seen_s(self) -> float:
        """The last moment at which the loop is known to have run."""
        return max(self.last_s, self.active_s)

    def line(self) -> int:
        """The line number of the `for` or `while`."""
        lines = [line for at in (self.head, self.end) if (line := line_at(self.code, at))]
        return min(lines, default=self.code.co_firstlineno)

    def place(self) -> str:
        """What is counted, with file and line number, for a note."""
        path = _short_path(self.code.co_filename)
        if len(path) > _PLACE_CHARACTERS:
            end = path[-_PLACE_CHARACTERS:]
            path = f"...{os.sep}{end.partition(os.sep)[2] or end}"
        return f"{self.what} at {path}:{self.line()}"


def is_standard_library(code: CodeType) -> bool:
    """Return True if it is of the standard library or the probe: their loops wait for others."""
    name = code.co_filename
    return name.startswith(STANDARD_LIBRARY) and not package_folder(name)


def is_package(code: CodeType) -> bool:
    """Return True if the code belongs to an installed package that is not the one that is run."""
    return bool(package_folder(code.co_filename)) and not is_users(code.co_filename)


def merge(loops: Iterable[Loop], *, has_one_head: Callable[[Loop], bool]) -> None:
    """Merge the two heads of a `while`: `continue` jumps to its test, the end jumps to its body.

    Both jumps are on the line of the `while`. (Overlapping ranges do not identify a loop: handlers
    of exceptions are placed after all loops.)
    """
    heads: dict[tuple[int, int], Loop] = {}
    extra: dict[int, int] = {}
    for loop in sorted(loops, key=lambda one: one.head):
        if has_one_head(loop):
            continue
        first = loop.into or heads.setdefault((id(loop.code), loop.line()), loop)
        if first is loop:
            continue
        extra[id(first)] = extra.get(id(first), 0) + loop.n
        first.extra = extra[id(first)]
        if loop.into is None:
            loop.into = first
            first.end = max(first.end, loop.end)
            first.began_s = min(first.began_s, loop.began_s)
            first.on_iteration = first.on_iteration or loop.on_iteration
            loop.on_iteration = None


def running(loops: Iterable[Loop], now_s: float) -> list[Loop]:
    """The loops that have not ended."""
    return [
        loop
        for loop in loops
        if loop.into is None
        and not loop.is_hot
        and loop.n > 1  # the first iteration has no duration
        and now_s - loop.seen_s() < max(ENDED_AFTER_S, 2 * loop.period_s())
    ]


def best(loops: Iterable[Loop], main_thread: int) -> Loop | None:
    """The outermost loop with iterations of suitable duration, or None."""

    def order(loop: Loop) -> tuple[int, bool, int, int]:
        return loop.owner, loop.thread != main_thread, loop.depth, loop.head - loop.end

    ordered = sorted(loops, key=order)
    for shortest_s, longest_s, least in _KINDS:
        for loop in ordered:
            if loop.n > least and shortest_s <= loop.period_s() < longest_s:
                return loop
    return None


def is_good(loop: Loop) -> bool:
    """Return True if there is no need to search for a better loop."""
    return loop.owner != LIBRARY and loop.period_s() < _LONG_S


def line_at(code: CodeType, at: int) -> int:
    """The line of the instruction at this offset, 0 if it has none."""
    from dis import findlinestarts

    found = 0
    for start, line in findlinestarts(code):
        if start > at:
            break
        found = line or found
    return found


def _short_path(path: str) -> str:
    """The path relative to the working directory or to the directory of packages that it is in."""
    folder = package_folder(path)
    if folder:
        return path[len(folder) :]
    here = os.getcwd().rstrip(os.sep) + os.sep  # noqa: PTH109
    return path[len(here) :] if path.startswith(here) else path


def main_thread_of(threading: object) -> int:
    """The identifier of the main thread, 0 if `threading` is not imported."""
    main = getattr(threading, "main_thread", None)
    return 0 if main is None else main().ident or 0

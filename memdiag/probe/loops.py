"""Loops of the program: how often each went round, and which of them is the program's step."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType

# What an iteration should take: such a step is worth a record, and 30 of them fit into the 30 s
# that a verdict may take. Chosen.
_FAST_S, _SLOW_S, _LONGEST_S = 0.005, 1.0, 60.0
# Shorter iterations are not counted, and tried again later. Chosen: counting takes 1 us of them.
HOT_S = 0.0002
_WINDOW = 16
# The steps of a program may be short for some time (batches that a resumed run passes over).
_WINDOWS_OF_STEPS = 64
# (shortest, longest, least iterations known), the best kind first.
_KINDS = ((_FAST_S, _SLOW_S, 3), (HOT_S, _FAST_S, 8), (_SLOW_S, _LONGEST_S, 2))
# Neither an iteration nor a sample inside of the loop for so long: it has ended. Chosen.
QUIET_S = 3.0
# Who a loop belongs to, the most telling first.
BAR, OWN, LIBRARY = 0, 1, 2
# How much of a place fits into a note.
_PLACE_CHARACTERS = 48
# (Not sys.prefix: it is /usr where a container's job lies in /usr/src/app.)
_STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen", "<_memdiag_probe")  # noqa: PTH120
_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


class Loop:
    """One loop. The thread that runs it counts; another one reads.

    end: offset of the last jump back to `head` that was seen. active_s: when a sample of the stack
    was last inside of it. tell: called after each iteration of the loop whose iterations are steps.
    into: the same loop under its other head. extra: iterations that were counted under that one.
    n_before: iterations at the last sample of the stack. total: how many there will be in all, 0
    if nobody says.
    """

    __slots__ = (
        "active_s",
        "began_s",
        "code",
        "depth",
        "end",
        "extra",
        "head",
        "into",
        "is_hot",
        "last_s",
        "n",
        "n_before",
        "owner",
        "short",
        "tell",
        "thread",
        "took_s",
        "total",
        "what",
        "window_s",
    )

    def __init__(self, code: CodeType, head: int, depth: int, thread: int, owner: int) -> None:
        self.code, self.head, self.end = code, head, head
        self.depth, self.thread, self.owner = depth, thread, owner
        self.n = self.n_before = self.extra = self.short = self.total = 0
        self.began_s = self.last_s = self.active_s = self.window_s = 0.0
        self.took_s = [float("inf")] * _WINDOW
        self.is_hot = False
        self.what = "iterations of the loop"
        self.into: Loop | None = None
        self.tell: Callable[[Loop, float], None] | None = None

    def count(self, now_s: float) -> bool:
        """An iteration has ended. Return True if they are too short to be watched."""
        try:
            n, tell = self.n + 1, self.tell
            took_s, self.n, self.last_s = now_s - self.last_s, n, now_s
            if n > 1:
                self.took_s[(n - 2) % _WINDOW] = took_s
            else:
                self.began_s = now_s
            if n % _WINDOW == 1:
                if now_s - self.window_s >= HOT_S * _WINDOW:
                    self.short, self.is_hot = 0, False
                else:
                    self.short += 1
                    self.is_hot = tell is None or self.short >= _WINDOWS_OF_STEPS
                self.window_s = now_s
        except Exception:
            return True
        if tell is not None:
            tell(self, now_s)
        return self.is_hot

    def period_s(self) -> float:
        """What an iteration takes: the median of the last."""
        known = sorted(self.took_s[: max(0, self.n - 1)])
        return known[(len(known) - 1) // 2] if known else float("inf")

    def seen_s(self) -> float:
        """When the loop was last known to run."""
        return max(self.last_s, self.active_s)

    def line(self) -> int:
        """The line of the `for` or `while`."""
        lines = [line for at in (self.head, self.end) if (line := _line_at(self.code, at))]
        return min(lines, default=self.code.co_firstlineno)

    def place(self) -> str:
        """What is counted, with file and line, for a note."""
        path = _short_path(self.code.co_filename)[-_PLACE_CHARACTERS:]
        return f"{self.what} at {path}:{self.line()}"


def is_standard(code: CodeType) -> bool:
    """Return True if it is the standard library's, or the probe's: such loops wait for others."""
    name = code.co_filename
    return name.startswith(_STANDARD) and not is_package(code)


def is_package(code: CodeType) -> bool:
    """Return True if it belongs to an installed package."""
    name = code.co_filename
    return _PACKAGES[0] in name or _PACKAGES[1] in name


def merge(loops: Iterable[Loop], *, has_one_head: Callable[[Loop], bool]) -> None:
    """Make one of the heads that a `while` has: `continue` goes to its test, its end to its body.

    Both jumps are on the line of the `while`. (Ranges that overlap are no sign: the handlers of
    exceptions lie behind all loops.)
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
            first.tell = first.tell or loop.tell
            loop.tell = None


def running(loops: Iterable[Loop], now_s: float) -> list[Loop]:
    """Those that have not ended."""
    return [
        loop
        for loop in loops
        if loop.into is None
        and not loop.is_hot
        and loop.n > 1  # the first tells no time
        and now_s - loop.seen_s() < max(QUIET_S, 2 * loop.period_s())
    ]


def best(loops: Iterable[Loop], main_thread: int) -> Loop | None:
    """The loop whose iterations are the steps: the outermost whose iterations are short enough."""

    def order(loop: Loop) -> tuple[int, bool, int, int]:
        return loop.owner, loop.thread != main_thread, loop.depth, loop.head - loop.end

    ordered = sorted(loops, key=order)
    for shortest_s, longest_s, least in _KINDS:
        for loop in ordered:
            if loop.n > least and shortest_s <= loop.period_s() < longest_s:
                return loop
    return None


def is_good(loop: Loop) -> bool:
    """Return True if no better one is to be looked for."""
    return loop.owner != LIBRARY and loop.period_s() < _SLOW_S


def _line_at(code: CodeType, at: int) -> int:
    from dis import findlinestarts

    found = 0
    for start, line in findlinestarts(code):
        if start > at:
            break
        found = line or found
    return found


def _short_path(path: str) -> str:
    """Relative to the working directory, or to the directory of packages that it lies in."""
    for mark in _PACKAGES:
        if mark in path:
            return path.rpartition(mark)[2]
    here = os.getcwd().rstrip(os.sep) + os.sep  # noqa: PTH109
    return path[len(here) :] if path.startswith(here) else path


def main_thread_of(threading: object) -> int:
    """The main thread's identity, 0 where threading is not loaded."""
    main = getattr(threading, "main_thread", None)
    return 0 if main is None else main().ident or 0

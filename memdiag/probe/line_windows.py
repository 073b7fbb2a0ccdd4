"""Opens windows of lines in a process whose memory grows, and keeps what they have seen."""

from __future__ import annotations

import os
import sys
from math import inf
from time import monotonic

from . import ring_format
from .line_window import ENOUGH_HITS, LONGEST_S, LineWindow
from .loop_events import monitoring
from .places import NET_RISE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .places import Place, Places
    from .session import Session
    from .unnamed import Unnamed

    Watched = list[tuple[Place, bool]]
    Walk = tuple[int, int, float, int, int, int]  # number, step, time, malloc, blocks, device

# Windows in one process. Heuristic: growth may begin late.
_MOST_WINDOWS = 3
# What must have grown in the second half of the walks, and where the user wants an explanation
# always. Heuristic: a history of numbers takes hours for it.
_GROWN_BYTES, _GROWN_BYTES_ALWAYS = 1 << 18, 1 << 12
# Walks at different steps, and the time of walks in a program without steps. Heuristic.
_LEAST_WALKS, _WITHOUT_STEPS_S = 4, 10.0
# Part of the growth at which a place is watched, and for which a window waits. Heuristic.
_WATCHED, _IMPORTANT = 0.05, 0.2
_MOST_WATCHED = 6
# If places explain less than this part of the growth, malloc is read at each line. Heuristic.
_EXPLAINED = 0.5


class LineWindows:
    """The windows of one process, one at a time."""

    def __init__(self, session: Session, places: Places, unnamed: Unnamed) -> None:
        self._session, self._places, self._unnamed = session, places, unnamed
        self._step_s = -inf
        always = os.environ.get(ring_format.EXPLAIN_VARIABLE) == "always"
        self._least_bytes = _GROWN_BYTES_ALWAYS if always else _GROWN_BYTES
        self._window: LineWindow | None = None
        self._wanted: tuple[Watched, bool] | None = None
        self._opened = self._steps = 0
        self._lasted_s = 0.0
        self._sees_all_threads = True
        # By the line: how often, and bytes.
        self._watched: dict[Place, dict[tuple[str, int, str], tuple[int, float]]] = {}
        self._native: list[tuple[str, int, str, float]] = []

    @property
    def is_open(self) -> bool:
        """Return True while lines are followed."""
        return self._window is not None

    @property
    def is_wanted(self) -> bool:
        """Return True if a window is to open at the end of a step."""
        return self._wanted is not None

    @property
    def has_steps(self) -> bool:
        """Return True if a step was reported in a thread of the program a short time ago."""
        return monotonic() - self._step_s < _WITHOUT_STEPS_S

    def step_ended(self) -> None:
        """A step was reported in a thread of the program."""
        self._step_s = monotonic()

    @property
    def needs_main_thread(self) -> bool:
        """Return True if `open_wanted`, or `tick`, has to be called in the main thread, where no
        step is reported: before Python 3.12 lines are followed by the thread that runs them.
        """
        return (self.is_wanted or self.is_open) and not self.has_steps and monitoring() is None

    def consider(
        self, grown: dict[Place, float], walks: Sequence[Walk], *, in_program: bool
    ) -> None:
        """Open a window if memory grows and a line is not known yet for each place of weight.

        grown: bytes that the places have grown by since the middle of the walks, the most first.
        """
        explained, in_use = sum(grown.values()), growth_in_use(walks)
        if (
            self.is_open
            or self._opened >= _MOST_WINDOWS
            or self._lasted_s >= LONGEST_S
            or not self._has_history(walks)
            or max(explained, in_use) < self._least_bytes
        ):
            return
        is_native = explained < _EXPLAINED * in_use and not self._native
        watched = [
            (place, size >= _IMPORTANT * explained and self._hits(place) < ENOUGH_HITS)
            for place, size in grown.items()
            if size >= _WATCHED * explained
        ][:_MOST_WATCHED]
        self._wanted = None
        if is_native or any(is_awaited for _, is_awaited in watched):
            self._wanted = (watched, is_native)
            self.open_wanted(in_program=in_program)

    def open_wanted(self, *, in_program: bool) -> None:
        """Open a window that was wanted while no step had just ended.

        in_program: this is called in the thread of the steps, or in the main thread if that has
        none. In programs without steps the probe's thread opens it, where that can be.
        """
        if self._wanted is None:
            return
        if not in_program and (self.has_steps or monitoring() is None):
            return
        wanted, self._wanted = self._wanted, None
        self._open(*wanted)

    def rest(self) -> bool:
        """Follow no lines until the next `tick`. Returns False where that is not possible."""
        if self._window is None or not self._window.may_rest():
            return False
        self._window.rest()
        return True

    def tick(self) -> bool:
        """A step has ended, or a second without one. Return True if the window is over."""
        window = self._window
        if window is None:
            return False
        window.at_step()
        window.check()
        if window.is_closed:
            self._take_results(window)
            return True
        self._session.measure_next()
        return False

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.close()
            self._take_results(self._window)

    def after_fork_in_child(self) -> None:
        """Close the window in a forked child."""
        if self._window is not None:
            self._window.after_fork_in_child()

    def lines_of(self, place: Place) -> list[tuple[str, int, str, int]]:
        """Where a place was seen to grow, most of all first: (file, line, function, how often)."""
        known = sorted(self._watched.get(place, {}).items(), key=lambda one: one[1][::-1])
        return [(*line, count) for line, (count, _) in known[::-1]]

    def about(self) -> dict[str, Any]:
        """What else the windows have seen."""
        return {
            "steps": self._steps,
            "lasted_s": self._lasted_s,
            "all_threads": self._sees_all_threads,
            "native": self._native,
        }

    def _open(self, watched: Watched, is_native: bool) -> None:
        session = self._session
        self._opened += 1
        read_malloc = session.schedule.malloc_in_use() if is_native else None
        window = LineWindow(
            self._places,
            self._unnamed,
            watched,
            read_malloc,
            session.main_thread,
            session.step_now,
            LONGEST_S - self._lasted_s,
        )
        why_not = window.begin()
        if why_not:
            self._opened = _MOST_WINDOWS
            session.note(f"the lines that run are not followed: {why_not}")
            return
        self._window = window
        session.measure_next()

    def _has_history(self, walks: Sequence[Walk]) -> bool:
        """Return True if the program has been training for a while, not only been loading data."""
        if len({step for _, step, *_ in walks}) >= _LEAST_WALKS:
            return True
        return not self.has_steps and walks[-1][2] - walks[0][2] > _WITHOUT_STEPS_S

    def _hits(self, place: Place) -> int:
        return sum(count for count, _ in self._watched.get(place, {}).values())

    def _take_results(self, window: LineWindow) -> None:
        self._window = None
        for one in window.watched:
            known = self._watched.setdefault(one.place, {})
            for file, line, function, count, size in window.lines_of(one):
                before = known.get((file, line, function), (0, 0.0))
                known[file, line, function] = before[0] + count, before[1] + size
        self._steps += window.steps
        self._lasted_s += window.lasted_s
        self._sees_all_threads = self._sees_all_threads and window.sees_all_threads
        self._native = window.native_lines() or self._native


def is_program_thread() -> bool:
    """Return False in a thread of the probe, which may report steps as well."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals.get("__package__") != __package__


def growth_in_use(walks: Sequence[Walk]) -> float:
    """What is in use has grown by since the middle walk, 0 if it has not grown steadily."""
    return _steady_growth(
        [
            in_use(walk)
            for walk in walks[len(walks) // 2 :]
            if walk[3] >= 0  # malloc was read
        ]
    )


def in_use(walk: Walk) -> int:
    """Bytes that malloc and Python's own allocator had in use at a walk."""
    _, _, _, malloc, blocks, _ = walk
    return malloc + max(blocks, 0) * ring_format.BLOCK_BYTES


def growth_on_devices(walks: Sequence[Walk]) -> float:
    """The same for the memory of GPUs."""
    return _steady_growth([walk[-1] for walk in walks[len(walks) // 2 :] if walk[-1] >= 0])


def _steady_growth(sizes: list[int]) -> float:
    changes = sum(abs(after - before) for before, after in zip(sizes, sizes[1:]))
    if len(sizes) < 2 or sizes[-1] - sizes[0] < NET_RISE * changes:
        return 0.0
    return float(sizes[-1] - sizes[0])

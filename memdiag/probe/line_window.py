"""A window of a few steps in which the places that grow are read between the lines of the program.

The line before a place has grown is the one that adds to it. Where no place explains the growth,
what malloc has in use is read at each line as well: the line that gets most native memory.

The time of the readings is limited for each step and in all. A function that runs too many lines is
not followed any more: what grows while it runs is not seen to grow at any line.
"""

from __future__ import annotations

import os
import sys
from _thread import _count, allocate_lock, get_ident
from time import monotonic

from .kept_bytes import Arrays
from .known_places import KnownPlacesWalk
from .line_events import open_lines
from .loops import is_package, is_standard_library
from .ring_format import NO_STEP
from .watched_place import WatchedPlace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .line_events import Line
    from .places import Place, Places
    from .unnamed import Unnamed

# It ends once each important place was seen to grow so often. Heuristic.
ENOUGH_HITS = 3
# At most so many steps; more if an important place has not grown so often yet, and readings take
# this part of the time only. Heuristic: what grows once in an epoch takes hundreds of steps.
MOST_STEPS, _LITTLE = 45, 0.05
# The longest time of all windows of a process, and the time for readings in one. Heuristic: within
# 1% of an hour.
LONGEST_S, _MOST_SPENT_S = 30.0, 8.0
# Of one step, the part of its time for readings, beyond a first time. Heuristic: steps take twice
# as long, and before Python 3.12 what calling the trace function takes.
_PART, _FREE_S = 0.5, 0.01
# Functions that are left out in one step for this. Heuristic.
_MOST_LEFT_OUT = 8
# A reading of malloc that takes longer is not taken at each line if lines are left out. Heuristic.
_DEAREST_S = 50e-6
_MOST_LINES, _MOST_NATIVE_LINES = 3, 12
# The files of what the threads of a pool run.
_POOLS = ("concurrent/futures/thread.py", "multiprocessing/pool.py")


class LineWindow:
    """One window: call `at_step` at the end of each step and `check` now and then, until it is
    closed.
    """

    def __init__(
        self,
        places: Places,
        unnamed: Unnamed,
        growing: list[tuple[Place, bool]],
        read_malloc: Callable[[], int] | None,
        main_thread: int,
        step_now: Callable[[], int],
        longest_s: float,
    ) -> None:
        """growing: the places, and whether the window waits for each. read_malloc: what malloc has
        in use, None if the places explain the growth; read in the main thread. step_now: the number
        of the last step, NO_STEP without steps. longest_s: the window is over after this time at
        the latest.
        """
        self._longest_s = longest_s
        self._places, self._unnamed, self._arrays = places, unnamed, Arrays()
        self.watched = [WatchedPlace(one, self._arrays, is_important=k) for one, k in growing]
        self._read_malloc = read_malloc
        self._malloc_before: int | None = None
        # By line: of this step, and of those that were followed to their ends.
        self._net_of_step: dict[tuple[int, int], int] = {}
        self._net: dict[tuple[int, int], int] = {}
        self._step_now, self._step_number, self._whole_steps = step_now, 0, 0
        self._codes: dict[int, Any] = {}
        self._last: dict[int, Line | None] = {}
        self._begun: set[tuple[int, int]] = set()
        self._thread, self._main_thread = get_ident(), main_thread
        self._threads, self._had_others = 0, False
        self._lines: Any = None
        self._line_counts: dict[int, int] = {}
        self._left_out = 0
        self._began_s = self._step_s = self._call_s = 0.0
        self._spent_s = self._spent_in_step_s = 0.0
        self.steps = 0
        self._is_active = self._is_reading = self._is_over = False
        self._closing = allocate_lock()
        self.is_closed = False

    @property
    def age_s(self) -> float:
        """The time since it began."""
        return monotonic() - self._began_s

    @property
    def lasted_s(self) -> float:
        """For how long lines were followed: the first that ends after that time is the last."""
        return min(self.age_s, self._longest_s)

    @property
    def sees_all_threads(self) -> bool:
        """Return False if other threads may have run lines of the program that are not followed."""
        self._look_for_others()
        return not self._had_others

    def _look_for_others(self) -> None:
        self._had_others = self._had_others or (
            not self._lines.sees_all_threads
            and any(
                _may_run_program(top)
                for thread, top in sys._current_frames().items()
                if thread != self._thread
            )
        )

    def begin(self) -> str:
        """Begin, with the first step, in this thread. Returns why it is not possible, or ""."""
        found = open_lines(self._on_line, self._on_calls, self._fail)
        if isinstance(found, str):
            self.is_closed = True
            return found
        self._lines = found
        self._call_s = found.call_s()
        self._began_s = monotonic()
        self.at_step()
        return ""

    def at_step(self) -> None:
        """A step has ended."""
        if self.is_closed or not self.may_rest():
            return
        self.rest()
        frame = sys._getframe(1)
        if self._is_active:
            self._read(frame, self._lines.caller(frame), is_traced=False)
            self._add_step()
        self._is_active = False
        if self._is_finished():
            self.close()
            return
        self.steps += 1
        self._step_number = self._step_now()
        self._line_counts.clear()
        self._look_up(frame)
        self._left_out = 0
        self._spent_in_step_s, self._step_s = 0.0, monotonic()
        self._is_active = True
        if not self._lines.resume():
            self.close()

    def may_rest(self) -> bool:
        """Return True in the thread of the steps, not in a signal handler within a callback."""
        is_own = get_ident() == self._thread and not self._is_reading
        return is_own and not self._lines.is_in_callback()

    def rest(self) -> None:
        """Follow no lines of this thread until the end of `at_step`."""
        self._lines.rest()

    def check(self) -> None:
        """Close it if its time is over. Called in any thread."""
        if self._is_over or self.age_s > self._longest_s:
            self.close()

    def close(self) -> None:
        """End it, and undo everything, unless it is being read: then the next call does."""
        self._is_over, self._is_active = True, False
        if self._is_reading or self.is_closed or not self._closing.acquire(False):
            return
        try:
            if self._lines is None or self._lines.close():
                self.is_closed = True
                for one in self.watched:
                    one.release()
        finally:
            self._closing.release()

    def after_fork_in_child(self) -> None:
        """End it in a forked child."""
        self._is_reading = False
        self._closing = allocate_lock()
        self.close()

    def lines_of(self, watched: WatchedPlace) -> list[tuple[str, int, str, int, float]]:
        """Where a place has grown: (file, line, function, how often, bytes that it has added), the
        largest first; the most frequent first if the bytes are 0, not known.
        """
        found = [(watched.weight(key), count, key) for key, count in watched.hits.items()]
        found.sort(key=lambda one: one[:2], reverse=True)
        return [(*self._named(*key, count), size) for size, count, key in found[:_MOST_LINES]]

    def native_lines(self) -> list[tuple[str, int, str, float]]:
        """Lines that get native memory: (file, line, function, bytes per step)."""
        steps = self._whole_steps
        if not steps:
            return []
        most = sorted(self._net.items(), key=lambda one: -one[1])[:_MOST_NATIVE_LINES]
        return [self._named(*key, size / steps) for key, size in most if size > 0]

    def _named(self, code: int, line: int, value: Any) -> tuple[str, int, str, Any]:
        known = self._codes[code]
        file = os.path.abspath(known.co_filename)  # noqa: PTH100 (no pathlib in here)
        return file, line, getattr(known, "co_qualname", known.co_name), value

    def _add_step(self) -> None:
        number = self._step_now()
        has_numbers = number >= self._step_number != NO_STEP
        self._whole_steps += number - self._step_number if has_numbers else 1
        for key, size in self._net_of_step.items():
            self._net[key] = self._net.get(key, 0) + size

    def _is_finished(self) -> bool:
        age_s = self.age_s
        awaited = [one for one in self.watched if one.is_important]
        missing = [one for one in awaited if one.hit_count < ENOUGH_HITS]
        if self.steps < MOST_STEPS:
            is_enough = bool(awaited) and not missing and self._read_malloc is None
        else:
            is_enough = not missing or self._spent_s > _LITTLE * age_s
        return (
            self._is_over or is_enough or age_s > self._longest_s or self._spent_s > _MOST_SPENT_S
        )

    def _look_up(self, frame: Any) -> None:
        """Look up the places, and the line that runs."""
        wanted = [one.place for one in self.watched]
        walk = KnownPlacesWalk(self._places, self._arrays, self._unnamed, wanted)
        walk.run()
        last = self._last.get(self._thread)
        self._last = {} if last is None else {self._thread: last}
        self._net_of_step.clear()
        self._malloc_before = None
        for one in self.watched:
            one.look_up(walk)
        del walk
        if self._read_malloc is not None:
            began_s = monotonic()
            self._read_malloc()
            if monotonic() - began_s > _DEAREST_S and self._left_out:
                self._read_malloc = None
        self._read(frame, self._lines.caller(frame), is_traced=False)

    # -- called between lines ------------------------------------------------------------------

    def _fail(self) -> None:
        self._is_reading = self._is_active = False
        self._is_over = True
        if self._lines is not None:
            self._lines.pause()

    def _on_calls(self, number: int) -> None:
        if self._is_active:
            self._charge(number * self._call_s)

    def _on_line(self, frame: Any, line: Line | None, is_traced: bool) -> None:
        if not self._is_active or self._is_reading:
            return
        began_s = monotonic()
        self._is_reading = True
        if _count() != self._threads:  # threads may live for less than a step
            self._threads = _count()
            self._look_for_others()
        if line is not None and frame.f_code is line[0]:
            self._begun.add((id(line[0]), line[1]))
        try:
            self._read(frame, line, is_traced)
        finally:
            self._is_reading = False
        if line is not None:
            code = line[0]
            self._codes[id(code)] = code
            self._line_counts[id(code)] = self._line_counts.get(id(code), 0) + 1
        self._charge(monotonic() - began_s + self._call_s)

    def _read(self, frame: Any, line: Line | None, is_traced: bool) -> None:
        thread = get_ident()
        last = self._last.get(thread)
        if last is None and thread not in self._last:
            last = self._last.get(self._thread)  # a thread that begins: who has started it
        # (A call that spans all steps, such as `fit(...)`, does not replace a line that began.)
        goes_on = line is not None and (id(line[0]), line[1]) not in self._begun
        if last is None or not goes_on:
            self._last[thread] = line
        key = None if last is None else (id(last[0]), last[1])
        for one in self.watched:
            if one.read(frame, is_traced=is_traced) and key is not None and last is not None:
                one.hit(key, frame, is_traced=is_traced)
                self._codes[key[0]] = last[0]
        if self._read_malloc is not None and thread == self._main_thread:
            size, before = self._read_malloc(), self._malloc_before
            self._malloc_before = size
            if key is not None and last is not None and before is not None and size != before:
                self._net_of_step[key] = self._net_of_step.get(key, 0) + size - before
                self._codes[key[0]] = last[0]

    def _charge(self, took_s: float) -> None:
        """Account for readings. If they take too long, follow the function with the most lines no
        more; after some of these, pause until the next step.
        """
        self._spent_s += took_s
        self._spent_in_step_s += took_s
        now_s = monotonic()
        if now_s - self._began_s > self._longest_s:
            self._is_over = True
        is_too_much = self._spent_in_step_s > _FREE_S + _PART * (now_s - self._step_s)
        may_leave_out = self._line_counts and self._left_out < _MOST_LEFT_OUT
        if is_too_much and may_leave_out and not self._is_over:
            self._left_out += 1
            self._spent_in_step_s, self._step_s = 0.0, now_s
            most = max(self._line_counts, key=self._line_counts.__getitem__)
            self._lines.leave_out(self._codes[most])
            del self._line_counts[most]
        elif is_too_much or self._is_over:
            self._is_active = False
            self._lines.pause()


def _may_run_program(top: Any) -> bool:
    """Return False for a thread of the probe, and for one that a package has begun for itself, such
    as tqdm's monitor, unless it runs a function of the program now. A thread of a pool may run any
    function, and so may one of the standard library, such as that of a server.
    """
    is_of_package = is_of_probe = False
    at = top
    while at is not None:
        code = at.f_code
        is_of_probe = at.f_globals.get("__package__") == __package__
        if code.co_filename.endswith(_POOLS):
            return True
        if not is_of_probe and not is_standard_library(code):
            if not is_package(code):
                return True
            is_of_package = True
        at = at.f_back
    return not is_of_package and not is_of_probe  # of the outermost frame

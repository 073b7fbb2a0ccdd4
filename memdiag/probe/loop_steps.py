"""Steps where no framework reports any: iterations of the loop that the program runs.

In Python 3.12 and later `loop_events` counts loops of the program, before that `loop_positions`
reads how far they are; in all versions `libraries` counts those of some libraries. Tags of the
program and hooks in frameworks have priority, also if they begin later: the steps begin at 1 again
then.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from . import loops
from .guard import never_raises, ours
from .multiprocessing_role import multiprocessing_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .loop_events import LoopEvents
    from .loop_positions import LoopPositions
    from .loops import Loop
    from .session import Session

SWITCH = "MEMDIAG_LOOP_STEPS"
_OFF = ("0", "no", "off", "false")
# Time from the first loop seen until one is selected. Heuristic.
SELECT_AFTER_S = 2.0
# Interval of the samples while the selected loop runs. Heuristic.
_CHECK_EVERY_S = 5.0
# Steps of a framework, and how long none of them has ended, after which a loop may have the steps.
# Heuristic: a validation is shorter than the training.
_ENOUGH_STEPS, _SILENT_S = 8, 10.0
_SHORTEST_S = 1e-6  # of an iteration, so that there is a pace
# Limits of the searches for functions, and of the notes. Heuristic.
# Periods of loops with the same iterations differ by the noise of the samples. Heuristic.
_MUCH_LONGER = 2
_MAX_SEARCHES = 8
_MAX_NOTES = 8


def is_enabled() -> bool:
    """Return True unless the environment disables the counting of loops."""
    return os.environ.get(SWITCH, "").lower() not in _OFF


class LoopSteps:
    """Selects the loop whose iterations are the steps, and records them."""

    def __init__(
        self, session: Session, began_s: float, awaits_framework: Callable[[float], bool]
    ) -> None:
        """began_s: when the program began (monotonic clock).

        awaits_framework: returns True if a framework may still report steps at that time.
        """
        self._session = session
        self._began_s = began_s
        self._awaits_framework = awaits_framework
        self._events: LoopEvents | LoopPositions | None = None
        self._library_loops: list[Loop] = []
        self._selected: Loop | None = None
        self._offset = 0
        self._first_seen_s = self._next_check_s = 0.0
        self._framework = FrameworkSteps()
        self._searches = self._notes = 0
        self.is_stopped = False

    def start(self) -> None:
        """Begin to count loops, if this version of Python supports it."""
        from . import loop_events, loop_positions

        self._events = loop_events.open_tool() or loop_positions.open_positions()

    def stop(self) -> None:
        """Stop counting, and remove all events."""
        self.is_stopped = True
        self._rest()

    def _rest(self) -> None:
        """Count no loop of the program."""
        selected, self._selected = self._selected, None
        if selected is not None:
            selected.on_iteration = None
            self._note_end(selected, monotonic())
        self._close()

    def after_fork_in_child(self) -> None:
        """Stop in a forked child: its loops are not the program's steps."""
        self.is_stopped = True
        self._notes = _MAX_NOTES
        selected, self._selected = self._selected, None
        if selected is not None:
            selected.on_iteration = None
        self._close()

    def add(self, loop: Loop) -> None:
        """Add a loop that a library reports."""
        self._library_loops.append(loop)

    def update(self) -> None:
        """Find the running loops, and select another one if it is better. Never raises."""
        try:
            if self.is_stopped:
                return
            if multiprocessing_role() or self._others_count():
                self.stop()
                return
            now_s = monotonic()
            if self._waits_for_framework(now_s):
                return
            if now_s >= self._next_check_s or self._is_silent(now_s):
                self._update(now_s)
        except ours(Exception) as error:
            self._give_up(error)

    def _others_count(self) -> bool:
        """Return True once the program tags its steps, or a framework reports some again."""
        session = self._session
        return session.has_better_steps() and (session.tags_steps or self._framework.is_over)

    def _waits_for_framework(self, now_s: float) -> bool:
        """Return True if a framework reports steps, or may do so soon."""
        framework, session = self._framework, self._session
        if framework.is_over:
            return False
        if not session.has_better_steps():
            return self._awaits_framework(now_s)
        framework.update(session.steps_recorded[1], now_s)
        if not framework.is_over:
            self._rest()
            return True
        session.restart_steps()
        if self._events is None:
            self.start()
        return False

    @never_raises
    def _give_up(self, error: Exception) -> None:
        self.is_stopped = True
        self._close()
        self._session.note(f"the search for loops has failed ({type(error).__name__})", "step")

    def _close(self) -> None:
        events, self._events = self._events, None
        if events is not None:
            events.close()

    def _update(self, now_s: float) -> None:
        if self._events is not None:
            self._events.sample()
            known = list(self._events.loops.values())
            loops.merge(known, has_one_head=self._events.has_one_head)
            selected = self._selected
            if selected is not None and selected.into is not None:
                self._selected = selected.into
        is_settled = self._choose(now_s)
        counts = self._events is None or self._events.counts_by_itself
        self._next_check_s = now_s + _CHECK_EVERY_S if is_settled and counts else 0.0

    def _choose(self, now_s: float) -> bool:
        """Select another loop if it is better. Return True if none has to be searched for."""
        running, selected = loops.running(self._known(), now_s), self._selected
        # (Samples of a loop that begins anew between them see few of its iterations.)
        active = [one for one in self._known() if now_s - one.seen_s() < loops.ENDED_AFTER_S]
        running = [one for one in running if not any(_is_faster(x, one) for x in active)]
        if running and not self._first_seen_s:
            self._first_seen_s = now_s
        continues = selected is not None and self._continues(selected, running, now_s)
        if selected is not None and continues and loops.is_good(selected):
            return True
        if not any(loop.owner != loops.LIBRARY for loop in running):
            self._search(now_s)
        if not self._first_seen_s or now_s - self._first_seen_s < SELECT_AFTER_S:
            return False
        threading = sys.modules.get("threading")
        best = loops.best(running, loops.main_thread_of(threading))
        if best is None or best is selected or (continues and best.owner == loops.LIBRARY):
            return False
        self._select(best, now_s)
        return False

    def _known(self) -> list[Loop]:
        counted = list(self._events.loops.values()) if self._events is not None else []
        return counted + self._library_loops

    def _is_silent(self, now_s: float) -> bool:
        return self._selected is not None and now_s - self._selected.last_s > loops.ENDED_AFTER_S

    def _continues(self, selected: Loop, running: list[Loop], now_s: float) -> bool:
        """Return True if the loop has not ended, or may run again soon.

        Within another loop (of epochs) it runs again: the pause may last as long as it has run.
        """
        if selected in running:
            return True
        is_inside = any(
            now_s - loop.active_s < loops.ENDED_AFTER_S and _may_enclose(loop, selected)
            for loop in self._known()
            if loop.owner == selected.owner and loop.thread == selected.thread
        )
        ran_s = selected.last_s - selected.began_s
        return is_inside and now_s - selected.seen_s() < ran_s

    def _search(self, now_s: float) -> None:
        """Search for functions that no sample shows, at growing intervals."""
        if self._events is None or self._searches >= _MAX_SEARCHES:
            return
        if now_s - self._began_s > SELECT_AFTER_S * 2**self._searches:
            self._searches += 1
            self._events.find_functions()

    def _select(self, best: Loop, now_s: float) -> None:
        before, self._selected = self._selected, best
        since_s = best.began_s
        if before is not None:
            before.on_iteration = None
            self._note_end(before, now_s)
            # Another kind of work: the steps begin at 1 again.
            self._offset, since_s = best.n + best.extra, now_s
        elif self._framework.is_over:
            # Iterations that nobody has counted: as many as the pace of the loop would make.
            silent_s = now_s - self._framework.last_s
            missed = int(silent_s / max(best.period_s(), _SHORTEST_S))
            self._offset = best.n + best.extra - self._framework.reached - missed
        best.on_iteration = self._record
        of = f", {best.total} in all" if best.total else ""
        self._note(
            f"{best.place()} ({_duration(best.period_s())} each{of},"
            f" counted from {since_s - self._began_s:.1f} s on)"
        )

    def _record(self, loop: Loop, now_s: float) -> None:
        """Record an iteration of the selected loop. Called in the program's thread."""
        try:
            self._session.loop_step(loop.n + loop.extra - self._offset, now_s)
        except ours(Exception):
            return

    def _note_end(self, loop: Loop, now_s: float) -> None:
        at_s = now_s - self._began_s
        self._note(f"until {at_s:.1f} s {loop.place()}")

    def _note(self, text: str) -> None:
        self._notes += 1
        if self._notes <= _MAX_NOTES:
            self._session.note(f"steps: {text}")


class FrameworkSteps:
    """The steps of a framework.

    reached: how many there were. last_s: when the last one was noticed. is_over: none has ended for
    longer than all of them have taken; the program now evaluates, or serves.
    """

    def __init__(self) -> None:
        self.reached = 0
        self._began_s = self.last_s = 0.0
        self.is_over = False

    def update(self, reached: int, now_s: float) -> None:
        """Called once a second. now_s: on the monotonic clock."""
        if reached != self.reached:
            self._began_s = self._began_s or now_s
            self.reached, self.last_s = reached, now_s
            return
        lasted_s, silent_s = self.last_s - self._began_s, now_s - self.last_s
        self.is_over = reached >= _ENOUGH_STEPS and silent_s > max(_SILENT_S, lasted_s)


def _is_faster(outer: Loop, inner: Loop) -> bool:
    """Return True if iterations of `inner` seem to take much longer than those around them."""
    is_outer = outer is not inner and outer.thread == inner.thread and _may_enclose(outer, inner)
    return is_outer and _MUCH_LONGER * outer.period_s() < inner.period_s()


def _may_enclose(outer: Loop, inner: Loop) -> bool:
    """Return True if `inner` may run within an iteration of `outer`."""
    if outer.code is not inner.code:
        return outer.depth < inner.depth
    has_end = outer.end > outer.head  # not where a library reports the iterations
    return outer.head < inner.head and (inner.head < outer.end or not has_end)


def _duration(seconds: float) -> str:
    amount, unit = (seconds, "s") if seconds >= 1 else (seconds * 1e3, "ms")
    return f"{float(f'{amount:.2g}'):g} {unit}"

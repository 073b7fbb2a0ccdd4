"""Steps where nobody tells any: the iterations of the loop that the program spends its time in.

Python 3.12 and later count the loops of the program themselves (`loop_events`); everywhere some
libraries tell theirs (`libraries`). The program's tags and the hooks in frameworks win over these,
also when they come later: the steps begin anew then.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from . import loops
from .roles import multiprocessing_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .loop_events import LoopEvents
    from .loops import Loop
    from .session import Session

SWITCH = "MEMDIAG_LOOP_STEPS"
_OFF = ("0", "no", "off", "false")
# From the first loop that is seen until one is chosen. Chosen: preparations are shorter or longer.
SETTLE_S = 2.0
# While all is well a look at the stacks is enough every so often.
_CALM_S = 5.0
_MOST_SWEEPS = 8
_MOST_NOTES = 8


def wanted() -> bool:
    """Return False if the environment says that loops are not to be counted."""
    return os.environ.get(SWITCH, "").lower() not in _OFF


class LoopSteps:
    """The loop whose iterations are the steps, found by looks that the probe's thread takes."""

    def __init__(self, session: Session, began_s: float, waits: Callable[[float], bool]) -> None:
        """began_s: when the program began, on the monotonic clock. waits: told the time, says
        whether a framework that is there may still tell steps.
        """
        self._session = session
        self._began_s = began_s
        self._waits = waits
        self._events: LoopEvents | None = None
        self._told_by_libraries: list[Loop] = []
        self._chosen: Loop | None = None
        self._offset = 0
        self._settling_s = self._look_s = 0.0
        self._sweeps = self._notes = 0
        self.is_over = False

    def start(self) -> None:
        """Begin to count loops where this Python lets us."""
        from . import loop_events

        self._events = loop_events.begin()

    def stop(self) -> None:
        """Count no more, and leave nothing behind."""
        self.is_over = True
        chosen, self._chosen = self._chosen, None
        if chosen is not None:
            chosen.tell = None
            self._note_end(chosen, monotonic())
        self._close()

    def forked(self) -> None:
        """In a forked child: its loops are not the program's steps."""
        self.is_over = True
        self._notes = _MOST_NOTES
        chosen, self._chosen = self._chosen, None
        if chosen is not None:
            chosen.tell = None
        self._close()

    def add(self, loop: Loop) -> None:
        """A library tells of this loop."""
        self._told_by_libraries.append(loop)

    def look(self) -> None:
        """See which loops run, and whether another one is to be the steps. Never raises."""
        try:
            if self.is_over:
                return
            if self._session.steps_are_told() or multiprocessing_role():
                self.stop()
                return
            now_s = monotonic()
            if self._waits(now_s):
                return
            if now_s >= self._look_s or self._is_quiet(now_s):
                self._look(now_s)
        except Exception:
            self._give_up()

    def _give_up(self) -> None:
        self.is_over = True
        try:
            self._close()
        except Exception:
            return

    def _close(self) -> None:
        events, self._events = self._events, None
        if events is not None:
            events.close()

    def _look(self, now_s: float) -> None:
        if self._events is not None:
            self._events.sample()
            known = list(self._events.loops.values())
            loops.merge(known, has_one_head=self._events.has_one_head)
            chosen = self._chosen
            if chosen is not None and chosen.into is not None:
                self._chosen = chosen.into
        if self._is_settled(now_s):
            self._look_s = now_s + _CALM_S
        else:
            self._look_s = 0.0

    def _is_settled(self, now_s: float) -> bool:
        """Choose, where there is something to choose. Return True if all is well as it is."""
        running, chosen = loops.running(self._known(), now_s), self._chosen
        if running and not self._settling_s:
            self._settling_s = now_s
        goes_on = chosen is not None and self._goes_on(chosen, running, now_s)
        if chosen is not None and goes_on and loops.is_good(chosen):
            return True
        if not any(loop.owner != loops.LIBRARY for loop in running):
            self._sweep(now_s)
        if not self._settling_s or now_s - self._settling_s < SETTLE_S:
            return False
        threading = sys.modules.get("threading")
        best = loops.best(running, loops.main_thread_of(threading))
        if best is None or best is chosen or (goes_on and best.owner == loops.LIBRARY):
            return False
        self._choose(best, now_s)
        return False

    def _known(self) -> list[Loop]:
        counted = list(self._events.loops.values()) if self._events is not None else []
        return counted + self._told_by_libraries

    def _is_quiet(self, now_s: float) -> bool:
        return self._chosen is not None and now_s - self._chosen.last_s > loops.QUIET_S

    def _goes_on(self, chosen: Loop, running: list[Loop], now_s: float) -> bool:
        """Return True if the loop has not ended, or may come back soon.

        Inside of another loop (of epochs) it comes back: a pause may then last as long as it ran.
        """
        if chosen in running:
            return True
        is_inside = any(
            now_s - loop.active_s < loops.QUIET_S and _may_enclose(loop, chosen)
            for loop in self._known()
            if loop.owner == chosen.owner and loop.thread == chosen.thread
        )
        ran_s = chosen.last_s - chosen.began_s
        return is_inside and now_s - chosen.seen_s() < ran_s

    def _sweep(self, now_s: float) -> None:
        """Look for what no sample shows, ever more seldom."""
        if self._events is None or self._sweeps >= _MOST_SWEEPS:
            return
        if now_s - self._began_s > SETTLE_S * 2**self._sweeps:
            self._sweeps += 1
            self._events.sweep()

    def _choose(self, best: Loop, now_s: float) -> None:
        before, self._chosen = self._chosen, best
        since_s = best.began_s
        if before is not None:
            before.tell = None
            self._note_end(before, now_s)
            # Another kind of work: the steps begin anew, at 1.
            self._offset, since_s = best.n + best.extra, now_s
        best.tell = self._ended
        of = f", {best.total} in all" if best.total else ""
        self._note(
            f"{best.place()} ({_duration(best.period_s())} each{of},"
            f" counted from {since_s - self._began_s:.1f} s on)"
        )

    def _ended(self, loop: Loop, now_s: float) -> None:
        """An iteration of the chosen loop has ended. (In the program's thread.)"""
        try:
            self._session.loop_step(loop.n + loop.extra - self._offset, now_s)
        except Exception:
            return

    def _note_end(self, loop: Loop, now_s: float) -> None:
        at_s = now_s - self._began_s
        self._note(f"until {at_s:.1f} s {loop.place()}")

    def _note(self, text: str) -> None:
        self._notes += 1
        if self._notes <= _MOST_NOTES:
            self._session.note(f"steps: {text}")


def _may_enclose(outer: Loop, inner: Loop) -> bool:
    if outer.code is not inner.code:
        return outer.depth < inner.depth
    return outer.head < inner.head and inner.head < outer.end


def _duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2g} s"
    return f"{seconds * 1e3:.2g} ms"

"""The clock of the sampling, sources of readings, and their sums over the tree.

The fast readings (resident set of every process) are taken at the tick itself. Slow ones
(`smaps_rollup` of a large process, a driver call) come from a `Source` in `Background`: it runs in
a thread of its own, within a budget, and never delays a tick.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from memdiag.capture.process.clock import Budget, Clock
from memdiag.capture.process.tree import Process, ProcessId
from memdiag.values.measurements import Unavailable
from memdiag.values.metrics import SUMMED

Reading = int | float | Unavailable
# Readings of each process by canonical metric name. The key TREE overrides the sum over the
# processes in the row of the whole tree.
Readings = Mapping[ProcessId, Mapping[str, Reading]]


class Source(Protocol):
    """Reads some metrics for all processes of the tree at once."""

    def read(self, processes: Sequence[Process]) -> Readings:
        """Readings of `processes`, without those that have ended meanwhile.

        A reading that could not be taken is an `Unavailable` with the reason.
        """


class Ticker:
    """Deadlines every `interval_s` on a fixed grid, so that delays do not add up.

    ticks: how many were taken. missed: how many were skipped because the one before took too long
    or the machine was busy.
    """

    def __init__(self, *, clock: Clock, interval_s: float) -> None:
        self._clock = clock
        self._interval_s = interval_s
        self._next_s = clock.now_s()
        self.ticks = 0
        self.missed = 0

    def remaining_s(self) -> float:
        """Seconds until the next deadline, 0 when it is due."""
        return max(0.0, self._next_s - self._clock.now_s())

    def take(self) -> bool:
        """Take the tick that is due. Returns False if none is. Earlier ones count as missed."""
        late_s = self._clock.now_s() - self._next_s
        if late_s < 0:
            return False
        missed = int(late_s / self._interval_s)
        self.ticks += 1
        self.missed += missed
        self._next_s += (missed + 1) * self._interval_s
        return True

    def restart(self) -> None:
        """Start a new grid now, after an intended pause: nothing counts as missed."""
        self._next_s = self._clock.now_s()


class Background:
    """A slow source that is read in a thread of its own.

    `read` never waits: it returns the round that has finished since the last call (each round
    once), and requests the next one if the budget allows. An exception in the source ends its
    readings, with a reason, and does not affect anything else.
    """

    def __init__(self, source: Source, *, budget: Budget, name: str) -> None:
        self._source = source
        self._budget = budget
        self._name = name
        self._orders: queue.SimpleQueue[tuple[Process, ...] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        # Each is written in one assignment, by the worker while `_running`, which is written last.
        self._running = False
        self._stopped = False
        self._finished: Readings | None = None
        self.failure: str = ""
        self.rounds = 0

    def read(self, processes: Sequence[Process]) -> Readings:
        """The round finished since the last call, or nothing."""
        running = self._running  # read first: a round that finishes now is for the next call
        finished = self._finished
        if finished is not None:
            self._finished = None
        if not running and not self._stopped and self._budget.due():
            self._running = True
            self._start(tuple(processes))
        return finished or {}

    def stop(self) -> None:
        """Start no more rounds. A round that hangs is abandoned (its thread is a daemon)."""
        self._stopped = True
        self._orders.put(None)

    def _start(self, processes: tuple[Process, ...]) -> None:
        self._orders.put(processes)
        if self._thread.ident is not None:
            return
        try:
            self._thread.start()
        except RuntimeError as error:  # no more threads for this user
            self._give_up(f"{self._name} could not start a thread: {error}")

    def _work(self) -> None:
        while not self._stopped and (processes := self._orders.get()) is not None:
            self._round(processes)

    def _round(self, processes: tuple[Process, ...]) -> None:
        began_s = time.monotonic()
        try:
            readings = self._source.read(processes)
        except Exception as error:  # a bug in one source must not end the others
            self._give_up(f"{self._name} failed: {type(error).__name__}: {error}")
            return
        self._budget.spent(time.monotonic() - began_s)
        self.rounds += 1
        self._finished = readings
        self._running = False

    def _give_up(self, why: str) -> None:
        self.failure = why
        self._stopped = True
        self._running = False


def numbers(readings: dict[str, Reading]) -> dict[str, int | float]:
    """The readings that are available: usually `readings` itself."""
    if Unavailable not in map(type, readings.values()):
        return readings  # type: ignore[return-value]
    return {
        metric: reading
        for metric, reading in readings.items()
        if not isinstance(reading, Unavailable)
    }


def totals(
    old: Sequence[Mapping[str, Reading]], young: Sequence[Mapping[str, Reading]]
) -> dict[str, Reading]:
    """Sums over all processes. A sum without one of the old processes is unknown.

    A young process may be missing: a slow source's round may have begun before its start.
    """
    totals: dict[str, Reading] = {}
    present = set().union(*old, *young)
    for metric in present.intersection(SUMMED):
        values = [readings[metric] for readings in old if metric in readings]
        is_complete = len(values) == len(old)
        values += [readings[metric] for readings in young if metric in readings]
        reason = next((value for value in values if type(value) is Unavailable), None)
        if reason is not None:
            totals[metric] = reason
        elif is_complete:
            totals[metric] = sum(values)  # type: ignore[arg-type]  # they are numbers
    return totals

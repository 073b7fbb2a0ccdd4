"""Counts tensors at intervals that keep the cost within a share of the process's time.

The count runs at steps, in the thread of the step. Without steps the probe's heartbeat counts.
"""

from __future__ import annotations

from time import monotonic, thread_time

from . import ring_format
from .live_tensors import TensorCount
from .ring_format import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .session import Session

# Share of the process's time for counting, and when to begin. A process with torch has some 200,000
# objects, which take 20-80 ms to count. The first counts are taken on credit: without it a run of
# a minute would have one or two, too few for the kind of a leak. Heuristic.
SHARE = 0.001
CREDIT_S = 0.4
FIRST_S = 8.0
_AT_LEAST_S = 8.0
# Later counts are this part of the time since the start apart, until the share alone allows more:
# the credit is spread over the first minutes. Heuristic.
_PART_OF_AGE = 1 / 6


class TensorSampler:
    """The tensor counts of one process."""

    def __init__(self, session: Session, torch: Any) -> None:
        self._session = session
        self._count = TensorCount(torch)
        session.schedule.count_tensors = self._count.running
        self._began_s = monotonic()
        self._due_s = self._began_s + FIRST_S
        self._spent_s = 0.0
        self._running = self._said = False

    def tick(self, *, at_step: bool = False) -> None:
        """Count if it is due. Called at steps, and by the heartbeat."""
        try:
            if monotonic() >= self._due_s and not self._running:
                self._take(at_step=at_step)
        except Exception:
            self._due_s = float("inf")  # it would fail again
            self._session.note("counting failed in this version of torch", "tensors")

    def has_seen(self, kind: str) -> bool:
        """Return True if there was a tensor on this kind of device ("mps") at a count."""
        return kind in self._count.kinds

    def after_fork_in_child(self) -> None:
        """Start from zero in a forked child."""
        self._running = self._said = False
        self._began_s = monotonic()
        self._due_s = self._began_s + FIRST_S
        self._spent_s = 0.0

    def _take(self, *, at_step: bool) -> None:
        self._running = True  # a signal handler may tag a step during the count
        try:
            began_s = thread_time()
            readings = self._count(at_step=at_step)
            cost_s = thread_time() - began_s
        finally:
            self._running = False
        now_s = monotonic()
        self._spent_s += cost_s
        if readings is not None and "gc_objects" in readings:
            cost_s /= 2  # the next count skips these, which take as long as the rest
        # The next count, at the same cost, must fit into the share of all time until then.
        enough_s = self._began_s + (self._spent_s + cost_s - CREDIT_S) / SHARE
        age_s = now_s - self._began_s
        apart_s = max(_AT_LEAST_S, min(age_s * _PART_OF_AGE, cost_s / SHARE))
        self._due_s = max(now_s + apart_s, enough_s)
        if readings is None:
            self._note_why_not()
        else:
            values = [readings.get(metric, ABSENT) for metric in ring_format.TENSOR_COUNT_READINGS]
            self._session.tensor_counts(ring_format.READING.pack(*values))

    def _note_why_not(self) -> None:
        if not self._said:
            self._said = True
            text = "not counted while a mode intercepts every operation, nor without the GIL"
            self._session.note(text, "tensors")

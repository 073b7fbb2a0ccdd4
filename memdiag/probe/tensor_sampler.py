"""Counts tensors at intervals that keep the cost within a share of the process's time.

The count runs at steps, in the thread of the step. Without steps the probe's heartbeat counts.
"""

from __future__ import annotations

from time import thread_time

from . import ring_format
from .guard import Attempts, never_raises, ours
from .live_tensors import TensorCount
from .ring_format import ABSENT
from .spacing import Spacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .session import Session

# Share of the process's time for counting. A process with torch has some 200,000 objects, which
# take 20-80 ms to count. The first counts are taken on credit: without it a run of a minute would
# have one or two, too few for the kind of a leak. Heuristic.
SHARE = 0.001
CREDIT_S = 0.4
_AT_LEAST_S = 8.0


class TensorSampler:
    """The tensor counts of one process."""

    def __init__(self, session: Session, torch: Any) -> None:
        self._session = session
        self._running: bool
        self._has_begun: bool
        self._attempts: Attempts
        self._spacing: Spacing
        self._count = TensorCount(torch)
        session.schedule.count_tensors = self._count.running
        self._begin()

    def _begin(self) -> None:
        self._running = self._said = self._has_begun = False
        self._attempts = Attempts()
        self._spacing = Spacing(SHARE, CREDIT_S, _AT_LEAST_S)
        self._spacing.is_due()  # from now on

    @never_raises
    def tick(self, *, at_step: bool = False) -> None:
        """Count if it is due. Called at steps, and by the heartbeat."""
        try:
            if at_step and not self._has_begun:
                self._has_begun = True
                self._count.begin()
            if self._spacing.is_due() and self._attempts.may_begin() and not self._running:
                self._take(at_step=at_step)
        except ours(Exception) as error:
            if self._attempts.failed(error):
                self._session.note(f"counting failed ({type(error).__name__})", "tensors")

    def has_seen(self, kind: str) -> bool:
        """Return True if there was a tensor on this kind of device ("mps") at a count."""
        return kind in self._count.kinds

    def after_fork_in_child(self) -> None:
        """Start from zero in a forked child."""
        self._begin()

    def _take(self, *, at_step: bool) -> None:
        self._running = True  # a signal handler may tag a step during the count
        try:
            began_s = thread_time()
            with self._session.own_objects:
                readings = self._count(at_step=at_step)
            cost_s = thread_time() - began_s
        finally:
            self._running = False
        is_first = readings is not None and "gc_objects" in readings
        # The next count skips these, which take as long as the rest.
        self._spacing.took(cost_s, cost_s / 2 if is_first else cost_s)
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

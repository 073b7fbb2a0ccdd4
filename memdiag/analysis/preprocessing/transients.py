"""Transient memory, allocated and soon released: an evaluation, a checkpoint, a lone reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.median import median

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.analysis.policy import Policy
    from memdiag.values.measurements import Floats, Ints


def lasting(x: Floats, y: Floats, drops: Ints, policy: Policy) -> NDArray[np.bool_]:
    """Mask out short transient spikes and dips, shape (n,): True for the readings that remain.

    A spike ends with one of the `drops` (indices of the last reading before each), a dip begins
    with one; the recording may end within a spike of the same kind. Where they are too few to be
    judged on floors, the remaining readings show what was kept: memory that is released for a
    moment is neither the plateau of a warm-up nor a tear-down.
    """
    kept = np.ones(len(y), dtype=bool)
    if not len(drops):
        return kept
    height = 0.0
    readings = y.tolist()
    brief = _Brief.of(x, policy)
    for at in drops.tolist():
        before = _begin(readings, at, brief, policy)
        if before is not None:
            kept[before + 1 : at + 1] = False
            height = max(height, readings[at] - readings[at + 1])
        elif (after := _recovery(readings, at, brief, policy)) is not None:
            kept[at + 1 : after] = False
    if height > 0:
        common = policy.common
        kept[_end(readings, brief, common.most * height, common.margin * height) :] = False
    return kept if kept.mean() > 1 - policy.common.warm_share else np.ones_like(kept)


def _begin(readings: list[float], at: int, brief: _Brief, policy: Policy) -> int | None:
    """The last reading before the brief excursion that ends with the drop after `at`; None where
    the drop ends none."""
    after, rise = readings[at + 1], readings[at] - readings[at + 1]
    near, before = policy.common.little * rise, at - 1
    while before > 0 and readings[before] - after > near and brief.between(before, at + 1):
        before -= 1
    if before < 0 or not brief.between(before, at + 1):
        return None
    sudden = readings[before + 1] - readings[before] > policy.common.most * rise
    return before if sudden and abs(readings[before] - after) <= near else None


def _recovery(readings: list[float], at: int, brief: _Brief, policy: Policy) -> int | None:
    """The first reading after the brief dip that begins with the drop after `at`; None where it is
    none: pages that were swapped out, a reading that failed."""
    n, fall = len(readings), readings[at] - readings[at + 1]
    near, after = policy.common.little * fall, at + 2
    while after < n and readings[at] - readings[after] > near and brief.between(at, after):
        after += 1
    if after >= n or not brief.between(at, after):
        return None
    sudden = readings[after] - readings[after - 1] > policy.common.most * fall
    return after if sudden and abs(readings[after] - readings[at]) <= near else None


def _end(readings: list[float], brief: _Brief, jump: float, highest: float) -> int:
    """Where the excursion begins in which the readings end; their number where they end in none.

    It begins with more than the jump, and is at most `highest` above the reading before it, whose
    level may have grown since the excursions before.
    """
    n = before = len(readings)
    while (before := before - 1) > 0 and brief.between(before - 1, n):
        sudden = readings[before] - readings[before - 1] > jump
        if sudden and max(readings[before:]) - readings[before - 1] <= highest:
            return before
    return n


@dataclass(frozen=True, slots=True, kw_only=True)
class _Brief:
    """The longest transient: in readings, and along the axis from the one before to the one after.

    (Where readings are rare, a few of them are a long time.)
    """

    x: list[float]
    readings: int
    way: float

    @classmethod
    def of(cls, x: Floats, policy: Policy) -> _Brief:
        readings = max(1, int(policy.common.slight * len(x)))
        gap = median(np.diff(x)) if len(x) > 1 else 0.0
        run = float(x[-1] - x[0]) if len(x) else 0.0
        way = 2 * max(policy.common.slight * run, (readings + 1) * gap)
        return cls(x=x.tolist(), readings=readings, way=way)

    def between(self, before: int, after: int) -> bool:
        """What lies between these two readings (`after` may be the end) is brief."""
        last = min(after, len(self.x) - 1)
        return after - before - 1 <= self.readings and self.x[last] - self.x[before] <= self.way

"""Last readings that a verdict does not hang on: at its end a program does what it never did.

Where what they leave open is settled without them, they are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from memdiag.analysis.decision.case import Case, Decision
from memdiag.analysis.parameters import Shared, number
from memdiag.analysis.policy import PAGES
from memdiag.values.verdict import Reason, Verdict

P = TypeVar("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class End(Generic[P]):
    """readings: how many last ones may be left out, 0 for none. is_settled: whether what is found
    without them holds for the whole."""

    name: str
    readings: Callable[[Case, Decision, P], int]
    is_settled: Callable[[Case, Decision, P], bool]
    parameters: P


@dataclass(frozen=True, slots=True, kw_only=True)
class LastHundredth:
    """A little that moves in the last hundredth of the run makes no doubt of what was calm before.
    A step up may be the next of its staircase, and a rest that is too short does not get longer
    without its last readings."""

    part: int = number(100, "readings", "one in so many is the end of a run")


def _last_hundredth(case: Case, found: Decision, parameters: LastHundredth) -> int:
    prepared, common = case.prepared, case.policy.common
    x, y = prepared.x, prepared.y
    last = min(len(y) // parameters.part, common.few_samples)
    if last < 1 or prepared.floors or x[-1] - x[-1 - last] > 2 * prepared.run / parameters.part:
        return 0
    if found.reason is Reason.RECENT_STEP and found.tail < len(y) - last:
        return 0
    rise = float(y[-last:].max() - y[:-last].max())
    few = common.touched_bytes if prepared.role in PAGES else 0.0
    little = max(common.calm_growth * prepared.level, few)
    return 0 if rise > (0.0 if found.reason is Reason.RECENT_STEP else little) else last


def _is_calm(case: Case, without: Decision, parameters: Any) -> bool:
    return without.is_calm


class LastReading(Shared):
    """One last reading that is hardly lower than the one before makes no doubt of a leak: the first
    of a plateau would look like this, and so would any other."""


def _last_reading(case: Case, found: Decision, parameters: LastReading) -> int:
    y = case.prepared.y
    if (
        case.prepared.floors
        or len(y) < case.policy.common.few_samples
        or y[-1] > y[-2]
        or y[-2] < y.max()
    ):
        return 0
    return 1


def _is_leak(case: Case, without: Decision, parameters: LastReading) -> bool:
    y = case.prepared.y
    grown = float(y[-2] - y[min(without.tail, len(y) - 2)])
    return without.verdict is Verdict.LEAK and bool(
        y[-2] - y[-1] <= case.policy.common.slight * grown
    )


ENDS = (
    End(
        name="last_hundredth",
        readings=_last_hundredth,
        is_settled=_is_calm,
        parameters=LastHundredth(),
    ),
    End(name="last_reading", readings=_last_reading, is_settled=_is_leak, parameters=LastReading()),
)

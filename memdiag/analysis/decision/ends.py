"""Last readings that a verdict does not depend on: at its end a program does what it never did.

Where the verdict is clear without them, they are left out. Each rule gets the case, what was found
with all readings, and a function that decides without this many last ones; it returns the decision
without them where that holds for the whole, else None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Decision, Rule, rule
from memdiag.analysis.parameters import number
from memdiag.analysis.policy import PAGES
from memdiag.values.verdict import Reason, Verdict

Without = Callable[[int], Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastHundredth:
    """How many readings are the end of a run."""

    part: int = number(100, "readings", "one in this many is the end of a run")


@rule(LastHundredth())
def last_hundredth(
    case: Case, found: Decision, without: Without, parameters: LastHundredth
) -> Decision | None:
    """A small change in the last hundredth of the run does not make a stable series inconclusive.

    A step up may be the next of its staircase, and a rest that is too short does not get longer
    without its last readings.
    """
    prepared, common = case.prepared, case.policy.common
    x, y = prepared.x, prepared.y
    last = min(len(y) // parameters.part, common.few_samples)
    if last < 1 or prepared.floors or x[-1] - x[-1 - last] > 2 * prepared.run / parameters.part:
        return None
    is_step = found.reason is Reason.RECENT_STEP
    if is_step and found.tail < len(y) - last:
        return None
    few = common.touched_bytes if prepared.role in PAGES else 0.0
    most = 0.0 if is_step else max(common.stable_growth * prepared.level, few)
    if float(y[-last:].max() - y[:-last].max()) > most:
        return None
    before = without(last)
    return before if before.is_stable else None


@Rule
def last_reading(case: Case, found: Decision, without: Without) -> Decision | None:
    """One last reading that is slightly lower than the one before does not make a leak
    inconclusive: the first of a plateau would look like this, and so would any other."""
    y, common = case.prepared.y, case.policy.common
    if case.prepared.floors or len(y) < common.few_samples or y[-1] > y[-2] or y[-2] < y.max():
        return None
    before = without(1)
    grown = float(y[-2] - y[min(before.tail, len(y) - 2)])
    is_slight = y[-2] - y[-1] <= common.slight * grown
    return before if before.verdict is Verdict.LEAK and is_slight else None


ENDS = (last_hundredth, last_reading)

"""Of few readings, the last two or three came on by a good part of all the growth.

A slope of so few shows nothing, and no plateau either.
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What is no plateau."""

    share: float = number(0.2, "climb", "part of the rise before")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to calm of such readings."""
    y, first, common = case.prepared.y, case.view.first_sample, case.policy.common
    if len(y) >= common.few_samples or len(y) - first >= common.min_samples or first == 0:
        return None
    climb, rise = float(y[first] - y[:first].min()), float(y[-1] - y[first])
    if climb <= common.climb_noises * case.prepared.noise or rise <= parameters.share * climb:
        return None
    return Says(
        text="its last {readings} readings rose by {rise_y}, after a rise of {climb_y} before them",
        numbers={"readings": float(len(y) - first), "rise_y": rise, "climb_y": climb},
        reason=Reason.RECENT_STEP,
    )


CHECK = Check(name="still_rises", ask=ask, parameters=Parameters())

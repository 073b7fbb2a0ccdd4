"""Slow waves rise as a whole, by more than a small part of their height."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import Policy
from memdiag.analysis.stats.turning_points import Waves
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to calm of the last two thirds."""
    slow = case.recent_waves
    if slow is None or not waves_rise(slow, case.policy):
        return None
    return Says(
        text="it goes up and down in waves of {height_y}, and the waves rise by {rise_y}",
        numbers={"height_y": slow.height, "rise_y": slow.rise, "growth_p": slow.p_rise},
        reason=Reason.UNCERTAIN_TREND,
    )


def waves_rise(slow: Waves | None, policy: Policy) -> bool:
    """Whether waves rise beyond chance, and by more than is kept of a cycle."""
    if slow is None or slow.p_rise >= policy.common.alpha:
        return False
    return slow.rise > policy.common.little * slow.height


CHECK = Check(name="waves_rise", ask=ask, parameters=SHARED)

"""A staircase no longer than warm-ups last, or whose steps make no line."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to a staircase that may be a warm-up's."""
    policy = case.policy
    rises = window.trend.p_growth <= policy.common.alpha
    if rises and window.posterior >= policy.prior.leak_posterior:
        return None
    return Says(
        text="the steps may be chance ({growth_p}) or a warm-up: the probability of a leak is "
        "{posterior_share}, and {least_share} is needed",
        numbers={
            "posterior_share": window.posterior,
            "least_share": policy.prior.leak_posterior,
            "growth_p": window.trend.p_growth,
        },
        reason=Reason.RECENT_STEP,
        need_x=window.need_x,
    )


CHECK = Check(name="step_due", ask=ask, parameters=SHARED)

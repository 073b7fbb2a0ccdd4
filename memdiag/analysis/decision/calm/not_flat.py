"""The last regime may grow: a slope keeps too much weight beside the flat model."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to calm."""
    view = case.view
    is_flat = view.growing < case.policy.common.flat_doubt
    if is_flat or view.trend.slope <= 0 or view.is_one_step:
        return None
    return Says(
        text="it may be growing: a trend of {growth_rate} may be real or chance ({growth_p})",
        numbers={
            "growth_rate": view.trend.slope,
            "growth_p": view.p_growth,
            "growing_share": view.growing,
        },
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="not_flat", ask=ask, parameters=SHARED)

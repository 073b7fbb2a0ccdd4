"""A last regime of more than a fifth of the run is surely less steep than the coarse line, and may
not climb at all.
"""

from __future__ import annotations

import math

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to a coarse line that does not hold at its end."""
    view, line, common = case.view, window.view, case.policy.common
    if case.last_share <= common.short_share or view.tail_samples < common.fewest:
        return None
    unsure = 2 * math.hypot(line.trend.error, view.trend.error)
    if view.trend.slope >= common.slowing * line.trend.slope or view.p_growth < common.alpha:
        return None
    if line.trend.slope - view.trend.slope <= unsure:
        return None
    return Says(
        text="it grew by {growth_rate} overall, but by only {late_rate} in the last {last_share} "
        "of the run",
        numbers={
            "growth_rate": line.trend.slope,
            "late_rate": view.trend.slope,
            "last_share": case.last_share,
        },
        reason=Reason.SLOWING,
    )


CHECK = Check(name="slower_lately", ask=ask, parameters=SHARED)

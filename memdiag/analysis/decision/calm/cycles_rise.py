"""The medians of the cycles climb although their floors do not show it, or each floor lies higher
than the one before: those of the last regime where it is long, for what they did before it is a
warm-up.

(Means would climb with rare spikes that reach higher, which is a warning and no doubt.)
"""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.trend import trend
from memdiag.parameters import SHARED, Shared
from memdiag.verdicts import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to calm floors."""
    prepared, common = case.prepared, case.policy.common
    if not prepared.floors:
        return None
    first = case.view.first_sample
    long = case.last_share > common.warm_share and len(prepared.x) - first > 2
    first = first if long else 0
    floors = prepared.y[first:]
    if len(floors) >= common.cycles and bool((np.diff(floors) > 0).all()):
        rise = float(floors[-1] - floors[0])
        if rise <= common.immaterial_share * prepared.level:
            return None
        return Says(
            text="the lows of its last {floors} cycles lie each above the one before, by {rise_y} "
            "in all",
            numbers={"floors": float(len(floors)), "rise_y": rise},
            reason=Reason.UNCERTAIN_TREND,
        )
    fitted = trend(prepared.x[first:], prepared.middles[first:], prepared.noise)
    way = fitted.slope * float(prepared.x[-1] - prepared.x[first])
    if fitted.p_growth >= common.alpha or way <= common.calm_growth * prepared.level:
        return None
    return Says(
        text="the medians of its cycles rise by {rise_y}, which may be more than chance "
        "({growth_p})",
        numbers={"rise_y": way, "growth_p": fitted.p_growth},
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="cycles_rise", ask=ask, parameters=SHARED)

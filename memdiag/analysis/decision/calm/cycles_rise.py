"""Each floor of a sawtooth lies higher than the one before, if too unevenly for a line: those of
the last regime where it is long, for what they did before it is a warm-up.

Of n floors in any order, one in n! orders rises throughout.
"""

from __future__ import annotations

import math

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to calm floors."""
    prepared, common = case.prepared, case.policy.common
    if not prepared.floors:
        return None
    first = case.view.first_sample
    long = case.last_share > common.warm_share and len(prepared.x) - first > 2
    first = first if long else 0
    floors = prepared.y[first:]
    by_chance = math.exp(-math.lgamma(len(floors) + 1))
    if by_chance >= common.alpha or not bool((np.diff(floors) > 0).all()):
        return None
    rise = float(floors[-1] - floors[0])
    if rise <= common.immaterial_share * prepared.level:
        return None
    return Says(
        text="the floors of its last {floors} cycles rise one after another, by {rise_y} in total",
        numbers={"floors": float(len(floors)), "rise_y": rise},
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="cycles_rise", ask=ask, parameters=SHARED)

"""The second half of the growth is clearly slower than the first: the end of a warm-up looks so.

Its halves are those of the way where few of the readings are in the second; of few readings, each
rate is lower than the one before.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.stats.slope_test import trend
from memdiag.values.verdict import Reason

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to growth that slows down."""
    view, share = window.view, case.policy.common.slowing
    x, y = view.binned.x[view.tail :], view.binned.y[view.tail :]
    if len(x) < case.policy.common.blocks:
        least = case.policy.common.fewest
        return _falls_steadily(np.diff(y) / np.diff(x), least, share)
    half, by_way = len(x) // 2, int(np.searchsorted(x, (x[0] + x[-1]) / 2))
    if len(x) - by_way <= case.policy.common.short_share * len(x):
        half = min(by_way, len(x) - case.policy.common.fewest)
    early, late = trend(x[:half], y[:half], view.floor), trend(x[half:], y[half:], view.floor)
    unsure = 2 * math.hypot(early.error, late.error)
    if late.slope >= share * early.slope or early.slope - late.slope <= unsure:
        return None
    return _says(early.slope, late.slope)


def _falls_steadily(rates: Floats, least: int, share: float) -> Says | None:
    """Each of a few rates is lower than the one before."""
    falling = len(rates) >= least and bool((np.diff(rates) < 0).all())
    if not falling or rates[-1] >= share * rates[0]:
        return None
    return _says(float(rates[0]), float(rates[-1]))


def _says(early: float, late: float) -> Says:
    return Says(
        text="its growth slows down: {early_rate} in the first half of it, {late_rate} in the "
        "second",
        numbers={"early_rate": early, "late_rate": late},
        reason=Reason.SLOWING,
    )


CHECK = Check(name="slowing", ask=ask, parameters=SHARED)

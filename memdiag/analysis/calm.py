"""Rules for a last regime that does not grow: flat, a plateau, bounded cycles, or unclear."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.prepare import Prepared
from memdiag.analysis.trend import trend
from memdiag.analysis.view import View
from memdiag.policy import Policy

if TYPE_CHECKING:
    from memdiag.model import Floats


def is_flat(view: View, policy: Policy) -> bool:
    """Growth of the last regime has no weight left against the flat model."""
    return view.growing < policy.flat_doubt or (view.trend.slope <= 0 and view.p_growth > 0.5)


def rose(view: View, policy: Policy) -> bool:
    """The level rose before the last regime: a warm-up, not a stable run."""
    y = view.binned.y
    rise = float(np.median(y[view.tail :]) - np.min(y[: max(1, min(3, view.tail or 3))]))
    return rise > policy.calm_growth * view.prepared.level


def means_grow(prepared: Prepared, policy: Policy) -> bool:
    """The means of the cycles climb although their floors do not show it."""
    if not prepared.floors:
        return False
    fitted = trend(prepared.x, prepared.means, prepared.noise)
    return fitted.p_growth < 5 * policy.alpha


def nothing_kept(y: Floats, noise: float, policy: Policy) -> bool:
    """Neither floor nor ceiling of the recent half lies above those of the half before.

    For readings that fall back again and again, of any shape: what rises within a cycle is given
    back. Judged on the last two thirds, so that a warm-up may have come before.
    """
    n = len(y)
    if n < 6:
        return False
    recent = y[n // 3 :] if n >= 9 else y[1:]
    half = len(recent) // 2
    before, after = recent[:half], recent[half:]
    room = max(2 * noise, policy.kept_share * float(np.ptp(recent)))
    ceiling = float(after.max()) <= float(before.max()) + room
    return float(after.min()) <= float(before.min()) + room and ceiling

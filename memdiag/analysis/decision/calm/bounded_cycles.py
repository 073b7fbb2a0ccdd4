"""Readings fall back again and again, of any shape, and nothing is kept: neither floor nor ceiling
of the recent half lies above those of the half before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.calm.waves_rise import waves_rise
from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.decision.regimes import rose
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason, Verdict

if TYPE_CHECKING:
    from memdiag.analysis.policy import Common
    from memdiag.values.measurements import Floats


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Argue for calm."""
    prepared, policy, view = window.view.prepared, case.policy, window.view
    if prepared.floors or prepared.teeth_climb > policy.common.noises:
        return None
    if not _nothing_kept(prepared.y, prepared.noise, policy.common):
        return None
    slow = view.recent_waves(policy)
    falls = max(prepared.falls, 0 if slow is None else slow.falls)
    if waves_rise(slow, policy) or falls < 2:
        return None
    return Says(
        text="it fell back {falls} times and, after its start, is no higher in the second half of "
        "its readings than in the first",
        numbers={"falls": float(falls)},
        reason=Reason.BOUNDED_CYCLES,
        verdict=Verdict.WARMUP if rose(view, policy) else Verdict.STABLE,
    )


def _nothing_kept(y: Floats, noise: float, common: Common) -> bool:
    """Judged without the first third, which may be a warm-up."""
    n, fewest = len(y), common.fewest
    if n < 2 * fewest:
        return False
    recent = y[int(common.warm_share * n) :] if n >= fewest**2 else y[1:]
    half = len(recent) // 2
    before, after = recent[:half], recent[half:]
    room = max(2 * noise, common.little * float(np.ptp(recent)))
    ceiling = float(after.max()) <= float(before.max()) + room
    return float(after.min()) <= float(before.min()) + room and ceiling


CHECK = Check(name="bounded_cycles", ask=ask, parameters=SHARED)

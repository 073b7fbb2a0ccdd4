"""Readings fall back again and again, of any shape, and nothing is kept: neither floor nor ceiling
of the recent half lies above those of the half before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.calm.waves_rise import waves_rise
from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.view import rose
from memdiag.parameters import number
from memdiag.verdicts import Reason, Verdict

if TYPE_CHECKING:
    from memdiag.model import Floats
    from memdiag.policy import Common


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What bounded cycles are."""

    cycles: int = number(2, "falls", "fewest big drops that make readings cycles")
    teeth_errors: float = number(
        4.0,
        "standard errors",
        "by which the levels of few teeth may rise",
        "benchmarks/_series.py: 36 bounded ones up to 3.9, a leak's 31",
    )
    readings: int = number(6, "readings", "fewest that have two halves")
    warm_readings: int = number(9, "readings", "fewest of which a third may be a warm-up")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Argue for calm."""
    prepared, policy, view = window.view.prepared, case.policy, window.view
    if prepared.floors or prepared.teeth_climb > parameters.teeth_errors:
        return None
    if not _nothing_kept(prepared.y, prepared.noise, parameters, policy.common):
        return None
    slow = view.recent_waves(policy)
    falls = max(prepared.falls, 0 if slow is None else slow.falls)
    if waves_rise(slow, policy) or falls < parameters.cycles:
        return None
    return Says(
        text="it fell back {falls} times, and its later half lies no higher than the half before",
        numbers={"falls": float(falls)},
        reason=Reason.BOUNDED_CYCLES,
        verdict=Verdict.WARMUP if rose(view, policy) else Verdict.STABLE,
    )


def _nothing_kept(y: Floats, noise: float, parameters: Parameters, common: Common) -> bool:
    """Judged without the first third, which may be a warm-up."""
    n = len(y)
    if n < parameters.readings:
        return False
    recent = y[n // common.warm_parts :] if n >= parameters.warm_readings else y[1:]
    half = len(recent) // 2
    before, after = recent[:half], recent[half:]
    room = max(2 * noise, common.kept_share * float(np.ptp(recent)))
    ceiling = float(after.max()) <= float(before.max()) + room
    return float(after.min()) <= float(before.min()) + room and ceiling


CHECK = Check(name="bounded_cycles", ask=ask, parameters=Parameters())

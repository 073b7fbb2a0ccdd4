"""Why a series does not keep growing, although its last regime alone cannot show that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.analysis.decision.growth.not_evidence import extrapolate
from memdiag.analysis.decision.stability.may_grow import rising
from memdiag.analysis.stats.changepoint import bins
from memdiag.analysis.stats.slope_test import Trend, trend
from memdiag.values.verdict import Argument, Reason, Verdict

if TYPE_CHECKING:
    from memdiag.analysis.policy import Common, Policy
    from memdiag.analysis.preprocessing.prepare import Prepared
    from memdiag.values.measurements import Floats


@Rule
def bounded_cycles(case: Case, window: Window) -> Argument | None:
    """Readings fall back again and again, in any shape, and nothing is kept: neither floor nor
    ceiling of the recent half lies above those of the half before.
    """
    prepared, policy, fit = window.fit.prepared, case.policy, window.fit
    if prepared.floors or prepared.teeth_climb > policy.common.noises:
        return None
    if not _nothing_kept(prepared.y, prepared.noise, policy.common):
        return None
    slow = case.recent_waves
    falls = max(prepared.falls, 0 if slow is None else slow.falls)
    if falls < 2 or (slow is not None and rising(slow, policy)):
        return None
    return Argument(
        text="it fell back {falls} times and, after its start, is no higher in the second half of "
        "its readings than in the first",
        numbers={"falls": float(falls)},
        reason=Reason.BOUNDED_CYCLES,
        verdict=Verdict.WARMUP if fit.rose(policy) else Verdict.STABLE,
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


@Rule
def immaterial(case: Case, window: Window) -> Argument | None:
    """What moved after the first third is negligible against the level; or, where the last regime
    is long enough to stand by itself, what moved in it.

    By bins, so that a lone reading is not a movement.
    """
    prepared, common, binned = case.prepared, case.policy.common, case.fit.binned
    tail = window.first_sample
    long = prepared.share_after(tail, common.fewest) > common.warm_share
    first = int(common.warm_share * len(binned.y))
    if long:
        first = max(first, int(np.searchsorted(binned.start[:-1], tail)))
    moved = float(np.ptp(binned.y[first:]))
    if moved >= common.immaterial_share * prepared.level:
        return None
    warm = _began_lower(prepared, case.policy)
    return Argument(
        text="it recently varied by no more than {moved_y}, too little to matter at {level_y}",
        numbers={"moved_y": moved, "level_y": prepared.level},
        reason=Reason.PLATEAU if warm else Reason.FLAT,
        verdict=Verdict.WARMUP if warm else Verdict.STABLE,
    )


@Rule
def equivalence(case: Case, window: Window) -> Argument | None:
    """Growth in the last half of the run is surely negligible.

    A test of equivalence (Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657-680) on its upper
    side: the upper end of the slope's interval is negligible. A step, a ramp or a leak that began
    within the half makes that end large, so that such series stay inconclusive.
    """
    prepared, policy = case.prepared, case.policy
    first, fitted = last_half(prepared, policy)
    if len(prepared.x) - first < policy.common.window_samples or fitted is None:
        return None
    most = fitted.slope + fitted.half_width(1 - policy.common.alpha)
    half = replace(prepared, x=prepared.x[first:], y=prepared.y[first:])
    _, grown, least = extrapolate(half, most, policy, case.context.planned_x)
    if grown >= least:
        return None
    warm = _began_lower(prepared, policy)
    return Argument(
        text="in the second half of the run it grows by at most {most_rate}, too little to matter",
        numbers={"most_rate": most, "growth_rate": fitted.slope},
        reason=Reason.PLATEAU if warm else Reason.NEGLIGIBLE,
        verdict=Verdict.WARMUP if warm else Verdict.STABLE,
    )


def last_half(prepared: Prepared, policy: Policy) -> tuple[int, Trend | None]:
    """Where the last half of the run begins, and its trend."""
    x = prepared.x
    first = int(np.searchsorted(x, (x[0] + x[-1]) / 2))
    if len(x) - first < 2:
        return first, None
    binned = bins(x[first:], prepared.y[first:], policy.segmentation.bins)
    return first, trend(binned.x, binned.y, binned.floor(prepared.noise))


def _began_lower(prepared: Prepared, policy: Policy) -> bool:
    """Return True if the level rose within the first third of the run: a warm-up, where the rest
    does not grow."""
    third = int(policy.common.warm_share * len(prepared.y))
    if third == 0:
        return False
    rise = float(np.median(prepared.y[third:])) - float(np.min(prepared.y[:third]))
    return rise > policy.common.stable_growth * prepared.level

"""Why a series does not keep growing, although its last regime alone cannot show that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.analysis.decision.growth.not_evidence import extrapolate, touched
from memdiag.analysis.decision.stability.may_grow import blocks_climb, rising
from memdiag.analysis.stats.changepoint import bins
from memdiag.analysis.stats.median import median
from memdiag.analysis.stats.slope_test import Trend, trend
from memdiag.values.verdict import Argument, Reason, Verdict

if TYPE_CHECKING:
    from memdiag.analysis.policy import Common, Policy
    from memdiag.analysis.preprocessing.prepare import Prepared
    from memdiag.values.measurements import Floats


@Rule
def bounded_cycles(case: Case, window: Window) -> Argument | None:
    """Readings fall back again and again, in any shape, or wander a little, and nothing is kept:
    neither floor nor ceiling of the recent half lies above those of the half before; growth beyond
    chance that is no part of such a cycle is kept. Or all that it had grown by was given back at
    once, after the first third, and it has not yet grown by half as much since.
    """
    prepared, policy, fit = window.fit.prepared, case.policy, window.fit
    if prepared.floors or prepared.teeth_climb > policy.common.noises:
        return None
    slow = case.recent_waves
    if slow is not None and rising(slow, policy):
        return None
    verdict = Verdict.WARMUP if fit.rose(policy) else Verdict.STABLE
    fall = _given_back(prepared, policy.common)
    if fall > 0:
        return Argument(
            text="it fell by {fall_y}, to where it had begun, and has not grown by half as "
            "much since",
            numbers={"fall_y": fall},
            reason=Reason.BOUNDED_CYCLES,
            verdict=verdict,
        )
    falls = max(prepared.falls, 0 if slow is None else slow.falls)
    if falls < 2 and _grows(prepared, policy):
        return None
    if not _nothing_kept(prepared, falls, policy.common):
        return None
    return Argument(
        text="it fell back {falls} times and, after its start, is no higher in the second half of "
        "the run than in the first",
        numbers={"falls": float(falls)},
        reason=Reason.BOUNDED_CYCLES,
        verdict=verdict,
    )


def _grows(prepared: Prepared, policy: Policy) -> bool:
    """Return True if what follows the first third grows beyond chance."""
    first = _after_warm_up(prepared, policy.common)
    if len(prepared.x) - first < policy.common.window_samples:
        return False
    return _trend_from(prepared, first, policy).p_growth < policy.common.alpha


def _given_back(prepared: Prepared, common: Common) -> float:
    """The largest fall, if it went down to the level of the start; else 0.

    A spike that is over is no growth that was given back: it stayed high for a moment.
    """
    x, y = prepared.x, prepared.y
    first = int(np.searchsorted(x, x[0] + common.slight * prepared.run))
    x, y = x[first:], y[first:]
    if len(y) < common.window_samples:
        return 0.0
    falls = np.maximum.accumulate(y) - y
    low = int(np.argmax(falls))
    fall, rise = float(falls[low]), float(y[low:].max() - y[low])
    kept = float(y[low] - y[: low + 1].min())
    late = x[low] - x[0] >= common.warm_share * (x[-1] - x[0])
    clear = fall > common.clear_noises * prepared.noise
    all_back = kept <= common.little * fall and rise <= common.most * fall
    high = np.diff(x) * (y[:-1] > y[low] + fall / 2)
    lasting = high[:low].sum() >= high[low:].sum()
    return fall if late and clear and all_back and lasting else 0.0


def _nothing_kept(prepared: Prepared, falls: int, common: Common) -> bool:
    """Judged without the first third, which may be a warm-up. Fewer than two falls may be a part of
    a cycle; slow ones are none where all of it is growth that is still stable."""
    y, fewest = prepared.y, common.fewest
    if len(y) < 2 * fewest:
        return False
    first = _after_warm_up(prepared, common) if len(y) >= fewest**2 else 1
    recent = y[first:]
    moved = float(np.ptp(recent))
    slow = moved <= common.stable_growth * prepared.level and len(recent) >= common.window_samples
    if falls < 2 and not slow:
        return False
    half = _after(prepared.x[first:], common.most, len(recent) // common.cycles)
    before, after = recent[:half], recent[half:]
    room = max(2 * prepared.noise, common.little * moved)
    ceiling = float(after.max()) <= float(before.max()) + room
    return float(after.min()) <= float(before.min()) + room and ceiling


@Rule
def immaterial(case: Case, window: Window) -> Argument | None:
    """What moved after the first third is negligible against the level, or, where the last regime
    does not grow, not surely more than that. Of a last regime that is long enough to stand by
    itself, what moved in it.

    Of pages that do not surely grow, at the end or as a whole, so is what a process may touch for
    the first time (`first_touch`). By blocks of four readings or more, so that a lone reading is
    not a movement, except at the end. (Floors of cycles count one by one.)
    """
    prepared, common = case.prepared, case.policy.common
    tail = window.first_sample
    long = prepared.share_after(tail, common.fewest) > common.warm_share
    y = prepared.y[max(_after_warm_up(prepared, common), tail if long else 0) :]
    fit, policy = case.fit, case.policy
    most = len(y) if prepared.floors else max(len(y) // common.cycles, 1)
    blocks = bins(y, y, min(policy.segmentation.bins, most))
    moved = float(np.ptp([*blocks.y, fit.binned.y[-1]]))
    least = common.immaterial_share * prepared.level
    if fit.p_growth >= common.alpha:
        least *= common.margin
        if not blocks_climb(fit, policy, common.block_r2):
            least = max(least, touched(prepared, policy))
    if moved >= least:
        return None
    warm = _began_lower(prepared, case.policy)
    return Argument(
        text="it recently varied by no more than {moved_y}, too little to matter at {level_y}",
        numbers={"moved_y": moved, "level_y": prepared.level},
        reason=Reason.PLATEAU if warm else Reason.FLAT,
        verdict=Verdict.WARMUP if warm else Verdict.STABLE,
    )


def _after_warm_up(prepared: Prepared, common: Common) -> int:
    """The first reading after the first third."""
    return _after(prepared.x, common.warm_share, common.window_samples)


def _after(x: Floats, share: float, least: int) -> int:
    """The first reading after this share of the way; of the readings, where fewer than `least` of
    them are in the rest of the way."""
    by_way = int(np.searchsorted(x, x[0] + share * (x[-1] - x[0])))
    return by_way if len(x) - by_way >= least else int(share * len(x))


@Rule
def equivalence(case: Case, window: Window) -> Argument | None:
    """Growth in the last half of the run is surely negligible.

    A test of equivalence (Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657-680) on its upper
    side: the upper end of the slope's interval is negligible. A step, a ramp or a leak that began
    within the half makes that end large, so that such series stay inconclusive.
    """
    prepared, policy = case.prepared, case.policy
    first, fitted = last_half(prepared, policy)
    if len(prepared.x) - first < policy.common.blocks or fitted is None:
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
    return first, _trend_from(prepared, first, policy)


def _trend_from(prepared: Prepared, first: int, policy: Policy) -> Trend:
    binned = bins(prepared.x[first:], prepared.y[first:], policy.segmentation.bins)
    return trend(binned.x, binned.y, binned.floor(prepared.noise))


def _began_lower(prepared: Prepared, policy: Policy) -> bool:
    """Return True if the level rose within the first third of the run: a warm-up, where the rest
    does not grow."""
    third = int(policy.common.warm_share * len(prepared.y))
    if third == 0:
        return False
    rise = median(prepared.y[third:]) - float(np.min(prepared.y[:third]))
    return rise > policy.common.stable_growth * prepared.level

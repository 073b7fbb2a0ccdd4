"""Why a series whose last regime does not grow beyond chance may grow after all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.analysis.decision.growth.not_evidence import extrapolate
from memdiag.analysis.decision.regimes import RegimeFit, r_squared
from memdiag.analysis.stats.changepoint import stretches
from memdiag.analysis.stats.median import median
from memdiag.values.verdict import Argument, Reason

if TYPE_CHECKING:
    from memdiag.analysis.policy import Common, Policy
    from memdiag.analysis.stats.turning_points import Waves
    from memdiag.values.measurements import Floats


@Rule
def not_flat(case: Case, window: Window) -> Argument | None:
    """The last regime may grow: a slope keeps too much weight beside the flat model, and the upper
    end of its interval is not negligible.
    """
    fit = case.fit
    is_flat = fit.growing < case.policy.common.growing_weight
    if is_flat or fit.trend.slope <= 0 or fit.is_one_step:
        return None
    most = fit.trend.slope + fit.trend.half_width(1 - case.policy.common.alpha)
    _, grown, least = extrapolate(fit.prepared, most, case.policy, case.context.planned_x)
    if grown < least:
        return None
    return Argument(
        text="it may be growing: a trend of {growth_rate} may be real or chance ({growth_p})",
        numbers={
            "growth_rate": fit.trend.slope,
            "growth_p": fit.p_growth,
            "growing_share": fit.growing,
        },
        reason=Reason.UNCERTAIN_TREND,
    )


@Rule
def always_rises(case: Case, window: Window) -> Argument | None:
    """The last readings of a last regime of few, each above all before it: by more than those
    varied, and by rises that do not slow down.

    Growth that speeds up, or has just begun, does not lie on a line, and leaves a scatter in which
    any line could be chance. Rises that slow down are a warm-up, except where they are the whole
    run and the last is not yet slight: nothing of it is level then.
    """
    common = case.policy.common
    y = case.prepared.y[case.fit.first_sample :]
    if not common.fewest <= len(y) < common.few_samples:
        return None
    is_highest = y[1:] > np.maximum.accumulate(y)[:-1]
    first = len(y) - int(np.argmin([*is_highest[::-1], False])) - 1
    before, highest = y[: first + 1], y[first:]
    if len(highest) < common.fewest:
        return None
    rises = np.diff(np.maximum(highest, before.max()))
    rise = float(rises.sum())
    if rise <= max(common.stable_growth * case.prepared.level, float(np.ptp(before))):
        return None
    goes_on = case.fit.tail == 0 and float(rises[-1]) > common.slight * rise
    slows = _slow_down(rises, common.slowing) or _slow_down(rises[:-1], common.slowing)
    if slows and not (goes_on and len(highest) == len(y)):
        return None  # (the last may be a spike)
    return Argument(
        text="its last {readings} readings rise one after another, by {rise_y} in total",
        numbers={"readings": float(len(highest)), "rise_y": rise},
        reason=Reason.UNCERTAIN_TREND,
    )


def _slow_down(rises: Floats, share: float) -> bool:
    half = max(1, len(rises) // 2)
    return float(rises[-half:].sum()) < share * float(rises[:half].sum())


@Rule
def cycles_rise(case: Case, window: Window) -> Argument | None:
    """Each floor of a sawtooth lies higher than the one before, if too unevenly for a line.

    Only the floors of the last regime count where it is long: what came before is a warm-up.

    Of n floors in any order, one in n! orders rises throughout.
    """
    prepared, common = case.prepared, case.policy.common
    if not prepared.floors:
        return None
    first = case.fit.first_sample
    long = case.last_share > common.warm_share and len(prepared.x) - first > 2
    floors = prepared.y[first if long else 0 :]
    by_chance = math.exp(-math.lgamma(len(floors) + 1))
    if by_chance >= common.alpha or not bool((np.diff(floors) > 0).all()):
        return None
    rise = float(floors[-1] - floors[0])
    if rise <= common.immaterial_share * prepared.level:
        return None
    return Argument(
        text="the floors of its last {floors} cycles rise one after another, by {rise_y} in total",
        numbers={"floors": float(len(floors)), "rise_y": rise},
        reason=Reason.UNCERTAIN_TREND,
    )


@Rule
def waves_rise(case: Case, window: Window) -> Argument | None:
    """Slow waves rise as a whole, by more than a small part of their height: those of the last two
    thirds.
    """
    slow = case.recent_waves
    if slow is None or not rising(slow, case.policy):
        return None
    return Argument(
        text="it goes up and down in waves of {height_y}, and the waves rise by {rise_y}",
        numbers={"height_y": slow.height, "rise_y": slow.rise, "growth_p": slow.p_rise},
        reason=Reason.UNCERTAIN_TREND,
    )


def rising(slow: Waves, policy: Policy) -> bool:
    """Return True if waves rise beyond chance, and by more than may be kept of a cycle."""
    common = policy.common
    return slow.p_rise < common.alpha and slow.rise > common.little * slow.height


@Rule
def climbs_as_a_whole(case: Case, window: Window) -> Argument | None:
    """Blocks of the whole run lie on a line that climbs, although its last regime does not.

    The level is no higher than at the start of that regime, or comes down: sawteeth and staircases
    that climb look like this, a warm-up that has ended does not.
    """
    fit, common = case.fit, case.policy.common
    falls = -window.rise > common.stable_growth * fit.prepared.level
    if fit.rose(case.policy) and not falls:
        return None
    if not blocks_climb(fit, case.policy, common.block_r2):
        return None
    return Argument(
        text="it is level or falls at the end, but averages over the run grow along a straight "
        "line",
        reason=Reason.UNCERTAIN_TREND,
    )


def blocks_climb(fit: RegimeFit, policy: Policy, least_r2: float) -> bool:
    """Return True if blocks of the whole run lie on a rising line, whatever single ones do."""
    prepared = fit.prepared
    if len(prepared.x) < policy.common.window_samples:
        return False
    blocks = stretches(prepared.x, prepared.y, policy.common.blocks, policy)
    rising = r_squared(blocks.x, blocks.y) >= least_r2
    return rising and float(blocks.y[-1] - blocks.y[0]) > 0


@Rule
def pause(case: Case, window: Window) -> Argument | None:
    """Of a run that mostly climbed: a rest at its end of one or two readings, or no longer than
    those after which growth continued.

    A rest is the way from one twentieth of the whole rise to the next, of which waves take a period
    and staircases a tread. (Those of a short part at the start are left out.)
    """
    fit, policy = case.fit, case.policy
    if fit.prepared.floors or not fit.rose(policy):
        return None
    if fit.tail_samples < policy.common.fewest:
        return Argument(
            text="only its last {readings} readings show no growth",
            numbers={"readings": float(fit.tail_samples)},
            reason=Reason.RECENT_STEP,
        )
    if case.last_share >= policy.common.short_share:
        return None
    if not (blocks_climb(fit, policy, policy.common.most) or _parts_rise(fit, policy.common)):
        return None
    x, y = fit.binned.x, fit.binned.y
    steps = np.arange(policy.common.short_share, 1, policy.common.slight)
    levels = float(y.min()) + float(np.ptp(y)) * steps
    reached = x[np.searchsorted(np.maximum.accumulate(y), levels)]
    *before, now = np.diff([*reached, x[-1]]).tolist()
    second, longest = sorted(before)[-2:]  # (one long one makes two steps, and no rests)
    wait = float(min(longest, 2 * second) - now)
    if wait <= 0:
        return None
    return Argument(
        text="its last rise was {now_x} ago, and earlier rises were up to {longest_x} apart",
        numbers={"now_x": now, "longest_x": longest, "second_x": second},
        reason=Reason.RECENT_STEP,
        need_x=wait,
    )


def _parts_rise(fit: RegimeFit, common: Common) -> bool:
    """Return True if each third of the run lies higher than the one before, by its least as well
    as its greatest value."""
    parts = np.array_split(fit.binned.y, common.fewest)
    ends = np.array([(part.min(), part.max()) for part in parts])
    return bool((np.diff(ends, axis=0) > common.slight * np.ptp(fit.binned.y)).all())


@Rule
def rest_too_short(case: Case, window: Window) -> Argument | None:
    """The rest at the end is no longer than those before it, or than the climb that led to it.

    Rests between steps predict how long the next one is
    (`memdiag/analysis/stats/rest_prediction.py`). After a single climb, a rest is too short that
    lasts for less than half of the time that the upper half of the climb took, so that a saturating
    climb counts little.
    """
    steps = case.staircase
    if steps is None or steps.still_to_wait <= 0:
        return _after_a_climb(case)
    return Argument(
        text="it rose in {steps} steps, the last one {waited_x} ago; another may come up to "
        "{longest_x} after the last",
        numbers={
            "steps": float(len(steps.at)),
            "waited_x": steps.waited,
            "longest_x": steps.waited + steps.still_to_wait,
        },
        reason=Reason.RECENT_STEP,
        need_x=steps.still_to_wait,
    )


def _after_a_climb(case: Case) -> Argument | None:
    fit, common = case.fit, case.policy.common
    x, y, first = fit.binned.x, fit.binned.y, fit.tail
    for piece in fit.before:
        if piece.flat or piece.slope <= 0:
            break
        first = piece.first
    length = float(x[-1] - x[fit.tail])
    if first == fit.tail or length > common.short_share * fit.prepared.run:
        return None
    top, bottom = median(y[fit.tail :]), float(y[first])
    if top - bottom < common.noises * fit.prepared.noise:
        return None
    above = first + np.flatnonzero(y[first : fit.tail] > (top + bottom) / 2)
    half = float(x[fit.tail] - x[above[0]]) if len(above) else 0.0
    wait = common.most * half - length
    if wait <= 0:
        return None
    return Argument(
        text="it has been level for {length_x}, too short a time after a rise whose upper half "
        "took {half_x}",
        numbers={"length_x": length, "half_x": half},
        reason=Reason.RECENT_STEP,
        need_x=wait,
    )

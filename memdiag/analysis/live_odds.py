"""May growth that is still going on stop a job? Odds of leak to warm-up while a run is watched.

A ramp to a plateau is a leak until it ends: the two are the same readings. A verdict on a finished
recording meets a ramp in the middle once in a while; one that is asked again and again meets the
middle of every ramp. So three things differ from the odds of `climbing`:

* lengths of warm-ups have a heavier tail (`live_tails`), as the longest of them are not in any
  collection of recordings that somebody found worth keeping; exact meters are believed earlier;
* growth is weighed by the length that a warm-up at its pace would have on the whole,
      max(live_lasted * length up to now, live_rise * level before / slope),
  as nine warm-ups in ten raise the level by a tenth at least: a creep of one part in a million per
  step is none, however young, while a fast ramp may be one, however long;
* growth that has become slower has to go on for longer than what was before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.case import Decision
from memdiag.analysis.decision.growth import reclaimed_before
from memdiag.analysis.decision.prior import undiminished
from memdiag.analysis.prepare import Prepared
from memdiag.analysis.saturation import saturation
from memdiag.analysis.view import View, r_squared
from memdiag.policy import EXACT_ROLES, Policy, WarmupLength
from memdiag.verdicts import Reason

if TYPE_CHECKING:
    from memdiag.model import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Climb:
    """Growth up to now. Lengths are in axis units.

    p_growth: p-value of "does not grow". length_x: of growth at about the present pace.
    base: level that it began from.
    plateau_x: length of the plateau that it left, 0 without one.
    before_x, before_rise: from the first reading to where that growth began.
    """

    slope: float
    p_growth: float
    length_x: float
    base: float
    plateau_x: float
    before_x: float
    before_rise: float


def posterior(prepared: Prepared, found: Decision, policy: Policy) -> float:
    """Probability, 0..1, that growth which the rules call a leak is one."""
    climb = _climb(prepared, found, policy)
    if climb is None or climb.p_growth > policy.live.alpha:
        return 0.0
    if climb.slope * climb.length_x < policy.common.immaterial_share * prepared.level:
        return 0.0
    if _has_slowed(found, climb, policy):
        return 0.0
    length = _lengths(prepared, policy)
    base = max(abs(climb.base), prepared.noise)
    whole = policy.live.rise * base / climb.slope
    odds = policy.prior.leak_odds / length.survival(max(_lasted(climb, prepared, policy), whole))
    if _is_even(prepared, found, policy):
        odds *= policy.live.even_odds
    if climb.plateau_x > 0:
        odds *= 1 + policy.live.plateau_odds * (1 - length.survival(climb.plateau_x))
    return odds / (1 + odds)


def _lasted(climb: _Climb, prepared: Prepared, policy: Policy) -> float:
    """Length of the growth that counts, axis units: a part of it while it may be a start's ramp."""
    may_be_start = climb.plateau_x <= 0 and prepared.role not in EXACT_ROLES
    return climb.length_x * (policy.live.lasted if may_be_start else 1.0)


def _lengths(prepared: Prepared, policy: Policy) -> WarmupLength:
    """Lengths of warm-ups; the heavier tail is one of pages, pools and caches of the system."""
    length = policy.prior.warmup_lengths[prepared.axis.kind]
    if prepared.role in EXACT_ROLES:
        return length
    return replace(length, shape=min(length.shape, policy.live.tails[prepared.axis.kind]))


def _is_even(prepared: Prepared, found: Decision, policy: Policy) -> bool:
    """An exact meter that grew along a straight line, up to now."""
    first = found.tail
    if prepared.role not in EXACT_ROLES or len(prepared.x) - first < policy.common.few_samples:
        return False
    return r_squared(prepared.x[first:], prepared.y[first:]) >= policy.common.regular_r2


def _climb(prepared: Prepared, found: Decision, policy: Policy) -> _Climb | None:
    if found.trend is None or found.binned is None or found.segmentation is None:
        return None
    x, y = prepared.x, prepared.y
    first = min(int(np.searchsorted(x, x[-1] - found.span_x)), len(x) - 2)
    base = float(np.median(y[first : first + 3]))
    return _Climb(
        slope=found.trend.slope,
        p_growth=found.trend.p_growth,
        length_x=found.span_x,
        base=base,
        plateau_x=_plateau(prepared, found, policy),
        before_x=float(x[first] - x[0]),
        before_rise=base - float(y[0]),
    )


def _plateau(prepared: Prepared, found: Decision, policy: Policy) -> float:
    """Length of the plateau that growth left, in axis units."""
    if found.reason is not Reason.GROWTH_AFTER_PLATEAU:
        return 0.0
    assert found.trend is not None
    assert found.binned is not None
    assert found.segmentation is not None
    bin_ = int(np.searchsorted(found.binned.start, found.tail, side="right")) - 1
    view = View(
        prepared=prepared,
        binned=found.binned,
        segmentation=found.segmentation,
        tail=bin_,
        trend=found.trend,
        growing=1.0,
    )
    return undiminished(view, policy).plateau_x


def _has_slowed(found: Decision, climb: _Climb, policy: Policy) -> bool:
    """It was clearly faster before, and may bend into a ceiling.

    Growth that a saturating curve describes must go on beside that curve; where no such curve
    fits, it changed abruptly, and what is new has to last for a while. (The first bins of a curve
    are too bent to fit: it is tried without them too.)
    """
    if climb.plateau_x > 0 or climb.before_x <= 0:
        return False
    if climb.before_rise <= policy.live.slowed * climb.slope * climb.before_x:
        return False
    if climb.length_x < policy.live.settled * climb.before_x:
        return True
    return any(_may_saturate(found, climb.before_x * part, policy) for part in (0.0, 0.5, 0.75))


def _may_saturate(found: Decision, skipped_x: float, policy: Policy) -> bool:
    """A saturating curve describes all but the first `skipped_x`, and growth beside it is none."""
    assert found.binned is not None
    assert found.segmentation is not None
    x, y = found.binned.x, found.binned.y
    kept = x >= x[0] + skipped_x
    curve = saturation(x[kept], y[kept], found.segmentation.noise)
    if curve is None or curve.misfit > policy.saturation.misfit:
        return False
    return curve.creep < policy.live.creep_errors * curve.creep_error


def is_one_tooth(readings: Prepared, found: Decision, policy: Policy) -> bool:
    """Growth of floors that is the next rise of what fell back before, by the readings.

    Bins of a fixed width can be shorter than a tooth; of several teeth some fall within the growth.
    """
    if found.trend is None or not len(readings.all_x):
        return False
    start = readings.all_x[-1] - found.span_x
    fell = _deepest_fall(readings.all_y[readings.all_x < start])
    if fell < policy.preparation.drop_noises * readings.noise:
        return False
    falls_inside = _deepest_fall(readings.all_y[readings.all_x >= start]) >= 0.5 * fell
    return (
        not falls_inside
        and found.trend.slope * found.span_x < reclaimed_before.CHECK.parameters.factor * fell
    )


def _deepest_fall(y: Floats) -> float:
    return float(np.max(np.maximum.accumulate(y) - y)) if len(y) else 0.0

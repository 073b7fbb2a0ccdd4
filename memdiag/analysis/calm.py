"""Rules for a last regime that does not grow: flat, a plateau, bounded cycles, or unclear."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.prepare import Prepared
from memdiag.analysis.trend import trend
from memdiag.analysis.view import View
from memdiag.analysis.waves import Waves, waves
from memdiag.policy import Policy

if TYPE_CHECKING:
    from memdiag.model import Floats


WAVE_NOISES = 6.0
"""A wave is no lower than so many standard deviations of a bin's noise (chosen)."""
CLIMB_NOISES = 4.0
"""A climb rises by at least so many standard deviations of a sample's noise (chosen)."""


def is_flat(view: View, policy: Policy) -> bool:
    """Growth of the last regime has no weight left against the flat model."""
    if is_one_step(view, policy):
        return True
    return view.growing < policy.flat_doubt or (view.trend.slope <= 0 and view.p_growth > 0.5)


def rises_all_the_time(view: View, policy: Policy) -> bool:
    """A last regime of few readings, each above the one before, by rises that do not slow down.

    Growth that speeds up lies on no line, and leaves a scatter in which any line could be chance.
    """
    y = view.prepared.y[view.first_sample :]
    rises = np.diff(y)
    if not policy.min_samples <= len(y) < policy.few_samples or not (rises > 0).all():
        return False
    if _slow_down(rises, policy) or _slow_down(rises[:-1], policy):  # (the last may be a spike)
        return False
    return float(y[-1] - y[0]) > policy.calm_growth * view.prepared.level


def _slow_down(rises: Floats, policy: Policy) -> bool:
    half = max(1, len(rises) // 2)
    return float(rises[-half:].sum()) < policy.slowing * float(rises[:half].sum())


def is_one_step(view: View, policy: Policy) -> bool:
    """The last regime rose by no more than the step that readings move by."""
    x = view.binned.x
    rise = view.trend.slope * float(x[-1] - x[view.tail])
    return 0 < rise < policy.flat_quanta * view.prepared.quantum


def is_immaterial(prepared: Prepared, tail: int, policy: Policy) -> bool:
    """All that moved after the first third is next to nothing against the level; or, where the last
    regime (from sample `tail` on) is long enough to speak for itself, what moved in it.
    """
    n = len(prepared.y)
    long = prepared.share_after(tail, policy.tail_samples) > policy.settled_share
    first = max(n // 3, tail) if long else n // 3
    recent = prepared.y[first:]
    return float(np.ptp(recent)) < policy.immaterial_share * prepared.level


def began_lower(prepared: Prepared, policy: Policy) -> bool:
    """The level rose within the first third, before the part that `is_immaterial` looks at."""
    third = len(prepared.y) // 3
    if third == 0:
        return False
    rise = float(np.median(prepared.y[third:])) - float(np.min(prepared.y[:third]))
    return rise > policy.calm_growth * prepared.level


def is_too_short(view: View, policy: Policy) -> bool:
    """The plateau is short against the climb before it: a pause is as likely as an end.

    The climb is measured by the way over which the upper half of its rise came, so that a
    saturating one counts little.
    """
    x, y, first = view.binned.x, view.binned.y, view.tail
    for piece in reversed([p for p in view.segmentation.pieces if p.first < view.tail]):
        if piece.flat or piece.slope <= 0:
            break
        first = piece.first
    if first == view.tail or float(x[-1] - x[view.tail]) > policy.short_share * view.prepared.run:
        return False
    top, bottom = float(np.median(y[view.tail :])), float(y[first])
    if top - bottom < CLIMB_NOISES * view.prepared.noise:
        return False
    above = first + np.flatnonzero(y[first : view.tail] > 0.5 * (top + bottom))
    half = float(x[view.tail] - x[above[0]]) if len(above) else 0.0
    return float(x[-1] - x[view.tail]) < policy.plateau_climbs * half


def still_rises(view: View, policy: Policy) -> bool:
    """Of few readings, the last two or three came on by a good part of all the growth: a slope of
    so few shows nothing, and no plateau either."""
    y, first = view.prepared.y, view.first_sample
    if len(y) >= policy.few_samples or len(y) - first >= policy.min_samples or first == 0:
        return False
    climb = float(y[first] - y[:first].min())
    return climb > CLIMB_NOISES * view.prepared.noise and y[-1] - y[first] > COMES_ON * climb


COMES_ON = 0.2
"""Such a part of the rise before is no plateau (chosen)."""


def falls(view: View, policy: Policy) -> bool:
    """The last regime comes down, and may be a swing of what goes up."""
    x = view.binned.x
    fall = -view.trend.slope * float(x[-1] - x[view.tail])
    return fall > policy.calm_growth * view.prepared.level


def rose(view: View, policy: Policy) -> bool:
    """The level rose before the last regime: a warm-up, not a stable run."""
    y = view.binned.y
    rise = float(np.median(y[view.tail :]) - np.min(y[: max(1, min(3, view.tail or 3))]))
    return rise > policy.calm_growth * view.prepared.level


def middles_grow(view: View, policy: Policy) -> bool:
    """The medians of the cycles climb although their floors do not show it, or each floor lies
    higher than the one before: those of the last regime where it is long, for what they did before
    it is a warm-up.

    (Means would climb with rare spikes that reach higher, which is a warning and no doubt.)
    """
    prepared = view.prepared
    if not prepared.floors:
        return False
    long = prepared.share_after(view.first_sample, policy.tail_samples) > policy.settled_share
    first = view.first_sample if long and len(prepared.x) - view.first_sample > 2 else 0
    floors = prepared.y[first:]
    if len(floors) >= policy.floor_cycles and bool((np.diff(floors) > 0).all()):
        return float(floors[-1] - floors[0]) > policy.immaterial_share * prepared.level
    fitted = trend(prepared.x[first:], prepared.middles[first:], prepared.noise)
    way = fitted.slope * float(prepared.x[-1] - prepared.x[first])
    return fitted.p_growth < policy.hint and way > policy.calm_growth * prepared.level


def recent_waves(view: View) -> Waves | None:
    """The waves of the last two thirds of the run, so that a warm-up may have come before."""
    first = len(view.binned.y) // 3
    return waves(view.binned.x[first:], view.binned.y[first:], WAVE_NOISES * view.floor)


def all_waves(view: View, turn: float) -> Waves | None:
    """The waves of the whole run."""
    return waves(view.binned.x, view.binned.y, WAVE_NOISES * view.floor, turn)


def waves_grow(recent: Waves | None, policy: Policy) -> bool:
    """Waves rise as a whole, by more than a small part of their height."""
    if recent is None or recent.p_rise >= policy.alpha:
        return False
    return recent.rise > policy.kept_share * recent.height


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

"""Posterior odds of leak to warm-up for growth of this length and regularity:

    odds = prior * plateau factor * regularity factor / S(length)

with S the survival function of warm-up lengths on this kind of axis, or in time if less of them
last as long in time, and the length that of undiminished growth, or that of a warm-up at its pace
on the whole, if that is longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memdiag.analysis.decision.regimes import RegimeFit, r_squared
from memdiag.analysis.policy import EXACT_ROLES, HELD, Policy, while_watched
from memdiag.analysis.preprocessing.prepare import Prepared
from memdiag.analysis.stats.changepoint import Piece, stretches
from memdiag.analysis.stats.median import median
from memdiag.values.measurements import AxisKind, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Undiminished growth: the bin it began in, its length, and what went before it.

    plateau_x: length of the plateau before, 0 without one. slowed: it grew much faster before.
    """

    first_bin: int
    length_x: float
    plateau_x: float = 0.0
    slowed: bool = False


def undiminished(fit: RegimeFit, policy: Policy) -> Span:
    """How far back growth continues at about the present rate, including jumps between regimes.

    A short rest at the very start is not a plateau: the program had not yet begun. Nor is a rest
    that is at most as long as a rest in the growth after it, or as the distance between two of its
    readings, which may hide a rest: it is one of its treads.
    """
    x, slope = fit.binned.x, fit.trend.slope
    start, plateau, slowed = fit.tail, 0.0, False
    for piece in fit.before:
        if _is_plateau(fit, piece, start, policy):
            length = float(x[start] - x[piece.first])
            if length <= _longest_rest(fit, start):
                continue
            idle = piece.first <= 1 and length < policy.common.warm_share * float(x[-1] - x[start])
            plateau = 0.0 if idle else length
            break
        pace = _rate(fit, piece)
        slower = slope < policy.common.slowing * pace
        if slower or pace < policy.common.most * slope:
            slowed = slower and piece.last - piece.first > 1
            break
        start = piece.first
    return Span(first_bin=start, length_x=float(x[-1] - x[start]), plateau_x=plateau, slowed=slowed)


def _rate(fit: RegimeFit, piece: Piece) -> float:
    """Mean rate of a regime with the jump that led out of it."""
    x, y = fit.binned.x, fit.binned.y
    last = min(piece.last, len(x) - 1)
    dx = float(x[last] - x[piece.first])
    return float(y[last] - y[piece.first]) / dx if dx > 0 else 0.0


def _longest_rest(fit: RegimeFit, first: int) -> float:
    """Length of the longest flat regime from bin `first` on, or distance between bins."""
    x = fit.binned.x
    flat = [p for p in fit.segmentation.pieces if p.first >= first and p.flat]
    ends = [min(p.last, len(x) - 1) for p in flat]
    rests = [float(x[end] - x[p.first]) for p, end in zip(flat, ends, strict=True)]
    return max([*rests, *np.diff(x[first:]).tolist()], default=0.0)


def _is_plateau(fit: RegimeFit, piece: Piece, start: int, policy: Policy) -> bool:
    """Return True for a flat regime that growth leaves without a jump: growth that restarts, not a
    staircase."""
    x, y, slope = fit.binned.x, fit.binned.y, fit.trend.slope
    if piece.last - piece.first < 2 or abs(piece.slope) >= policy.common.short_share * slope:
        return False
    expected = slope * float(x[start] - x[piece.last - 1])
    flat = y[piece.first : piece.last]
    jump = float(y[start] - median(flat))
    return jump <= policy.common.margin * expected + policy.common.noises * fit.segmentation.noise


def posterior_leak(fit: RegimeFit, policy: Policy, span: Span, regular_odds: float) -> float:
    """Posterior probability that growth of this length and regularity is a leak, 0..1."""
    odds = regular_odds / longer_share(fit.prepared, _whole(fit, policy, span), policy)
    if span.plateau_x > 0:
        rested = 1 - longer_share(fit.prepared, span.plateau_x, policy)
        odds *= 1 + policy.prior.plateau_odds * rested
    if span.slowed:
        odds /= 2
    return odds / (1 + odds)


def longer_share(prepared: Prepared, length_x: float, policy: Policy) -> float:
    """Share of warm-ups that last longer, 0..1: on this kind of axis, or in time if that is less.

    What is done again and again within a slow step, such as an iteration of reinforcement learning,
    warms up with it.
    """
    prior, pace_s = policy.prior, prepared.seconds_per_x
    share = prior.warmup_length(prepared.axis.kind).survival(length_x)
    if not pace_s:
        return share
    return min(share, prior.warmup_length(AxisKind.SECONDS).survival(length_x * pace_s))


def _whole(fit: RegimeFit, policy: Policy, span: Span) -> float:
    """Length of growth; of one that is slower than warm-ups are, until it has risen as they do."""
    y = fit.binned.y
    before, risen = float(y[span.first_bin]), float(y[-1] - y[span.first_bin])
    least = policy.prior.least_rise * max(abs(before), fit.prepared.noise)
    return span.length_x * max(1.0, least / risen) if risen > 0 else span.length_x


def regular_odds(fit: RegimeFit, policy: Policy) -> float:
    """Factor on the odds for growth by equal increments, none of them late or small."""
    prior = policy.prior
    length = prior.warmup_length(fit.prepared.axis.kind)
    first = fit.first_sample
    x, y = fit.prepared.x[first:], fit.prepared.y[first:]
    if len(x) < 2 * policy.common.fewest:
        return 1.0
    in_use = fit.prepared.role in (Role.IN_USE, Role.OBJECTS)
    odds = 1.0
    if in_use and fit.prepared.axis.kind is AxisKind.STEP:
        odds = policy.common.margin  # (pages, pools and holes, which fill for long, are not in it)
    pace = length.paced_odds if _is_paced(fit, policy) else 1.0
    if is_exact(fit, policy):
        return length.exact_odds * pace * odds
    half = len(x) // 2
    early = (y[half] - y[0]) / (x[half] - x[0])
    late = (y[-1] - y[half]) / (x[-1] - x[half])
    is_line = r_squared(x, y) >= policy.common.regular_r2
    is_regular = is_line and late > policy.common.slowing * early
    return max(length.regular_odds, pace) * odds if is_regular else 1.0


def _is_paced(fit: RegimeFit, policy: Policy) -> bool:
    """Return True for what a program holds that grew at a constant pace: between no two parts of
    the last regime much faster or slower than on the whole."""
    common, first = policy.common, fit.first_sample
    x, y = fit.prepared.x[first:], fit.prepared.y[first:]
    least = common.blocks if fit.prepared.floors else common.window_samples
    if fit.prepared.role not in HELD or len(x) < least:
        return False
    parts = stretches(x, y, common.cycles, policy)
    rates = np.diff(parts.y) / np.diff(parts.x)
    mean = float(rates.mean())
    return mean > 0 and bool(np.abs(rates - mean).max() <= common.short_share * mean)


def is_exact(fit: RegimeFit, policy: Policy) -> bool:
    """Return True for an exact metric whose last regime grew by the same amount every time."""
    first = fit.first_sample
    x, y = fit.prepared.x[first:], fit.prepared.y[first:]
    if fit.prepared.role not in EXACT_ROLES or len(x) <= policy.common.blocks:
        return False
    rates = np.diff(y) / np.diff(x)
    return bool(np.ptp(rates) <= policy.common.immaterial_share * abs(float(rates.mean())))


def most_of_leak(posterior: float, length_x: float, prepared: Prepared, policy: Policy) -> float:
    """Most confidence, 0..1, in a leak of this length and posterior that so many readings show.

    The first readings of a run meet a warm-up in its middle, as a run that is watched does. So of
    few readings these are the odds of a leak while a run is watched; those of fewer yet are lower
    by the square of their number. Twice as many are seldom the start of a run: from there on the
    odds rise in the same way.
    """
    kind = prepared.axis.kind
    finished = policy.prior.warmup_length(kind)
    watched = while_watched(policy, prepared.role).prior.warmup_length(kind)
    heavier = watched.survival(length_x) / finished.survival(length_x)
    times = prepared.samples / policy.common.few_samples
    readings = min(times, 1.0) * max(times / 2, 1.0)
    against = (1 - posterior) * heavier
    return 1 / (1 + against / (posterior * readings**2))

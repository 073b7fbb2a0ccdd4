"""From a prepared series to a verdict: is the last regime flat or growing, and what is growth?

Growing is weighed by posterior odds of leak against warm-up (docs/method.md):

    odds = prior * plateau factor * regularity factor / S(length of undiminished growth)

with S the survival function of warm-up lengths on this kind of axis (`Policy`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from memdiag.analysis.prepare import Prepared
from memdiag.analysis.segmentation import Binned, Piece, Segmentation, bins, segment
from memdiag.analysis.trend import Trend, line, trend
from memdiag.findings import Reason, Verdict
from memdiag.model import Role
from memdiag.policy import NO_METERS, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """What one series is.

    score: posterior probability that the verdict is right before calibration, 0..1.
    posterior_leak: probability of a leak given growth, 0..1.
    tail: first index (into the prepared samples) of the last regime.
    span_x: axis units of undiminished growth. trend: slope of the last regime.
    binned, segmentation: of the resolution that decided.
    need_x: further axis units until settled, None where unknown.
    """

    verdict: Verdict
    reason: Reason
    score: float
    posterior_leak: float = 0.0
    tail: int = 0
    span_x: float = 0.0
    trend: Trend | None = None
    binned: Binned | None = None
    segmentation: Segmentation | None = None
    need_x: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One resolution of a series, with the tail that was picked."""

    prepared: Prepared
    binned: Binned
    segmentation: Segmentation
    tail: int  # first bin of the last regime
    trend: Trend
    p_growth: float
    upper_slope: float
    growing: float  # posterior weight of a last regime that grows by more than nothing

    @property
    def floor(self) -> float:
        """Least noise of one bin's value."""
        return self.prepared.noise / math.sqrt(max(self.binned.width, 1.0))


def classify(prepared: Prepared, policy: Policy, planned_x: float | None = None) -> Classified:
    """Verdict on one prepared series. `planned_x`: where the run is planned to end."""
    early = _too_little(prepared, policy)
    if early is not None:
        return early
    counts = [
        c for c in policy.resolutions if c == policy.resolutions[0] or len(prepared.y) >= 3 * c
    ]
    alpha = policy.alpha / len(counts)
    views = [look(prepared, count, policy) for count in counts]
    first = _judge(views[0], policy, alpha, planned_x)
    calm = first.verdict in (Verdict.STABLE, Verdict.WARMUP)
    settled = calm and len(prepared.y) - first.tail > 0.15 * len(prepared.y)
    if not settled and first.verdict is not Verdict.LEAK:
        for view in views[1:]:
            other = _judge(view, policy, alpha, planned_x)
            if other.verdict is Verdict.LEAK:
                return other
    return first


def _too_little(prepared: Prepared, policy: Policy) -> Classified | None:
    """Answers that need no statistics: nothing there, all equal, too few, not a meter."""
    y = prepared.y
    if len(y) >= policy.min_samples and float(np.ptp(y)) == 0.0:
        return Classified(verdict=Verdict.STABLE, reason=Reason.FLAT, score=1 - 0.5 / len(y))
    if len(y) < policy.min_samples:
        return Classified(verdict=Verdict.INCONCLUSIVE, reason=Reason.TOO_FEW_SAMPLES, score=0.9)
    return None


def look(prepared: Prepared, count: int, policy: Policy) -> View:
    """Segment at one resolution, average the trend over where the last break may be."""
    binned = bins(prepared.x, prepared.y, count)
    floor = prepared.noise / math.sqrt(max(binned.width, 1.0))
    segmentation = segment(binned.x, binned.y, floor)
    n = len(binned.x)
    starts: dict[int, float] = {}
    for start, _, weight in segmentation.tails:
        if n - start >= 3 or n < 6:
            starts[start] = starts.get(start, 0.0) + weight
    if not starts:
        starts = {segmentation.pieces[-1].first: 1.0}
    total = sum(starts.values())
    fits = {s: trend(binned.x[s:], binned.y[s:], floor) for s in starts if n - s >= 2}
    p = min(1.0, 2 * sum(w * fits[s].p_growth for s, w in starts.items()) / total)
    upper = sum(w * (fits[s].slope + 2.3 * fits[s].error) for s, w in starts.items()) / total
    tail = max(starts, key=lambda s: starts[s])
    calm_slope = policy.calm_growth * prepared.level / max(prepared.run, 1e-300)
    growing = sum(
        weight
        for start, flat, weight in segmentation.tails
        if not flat and _slope_of(binned, start) > calm_slope
    )
    return View(
        prepared=prepared,
        binned=binned,
        segmentation=segmentation,
        tail=tail,
        trend=fits[tail],
        p_growth=p,
        upper_slope=upper,
        growing=growing,
    )


def _slope_of(binned: Binned, start: int) -> float:
    return line(binned.x[start:], binned.y[start:])[1]


def _judge(view: View, policy: Policy, alpha: float, planned_x: float | None) -> Classified:
    if view.p_growth < alpha and view.trend.slope > 0:
        return _growing(view, policy, planned_x)
    return _not_growing(view, policy)


def _answer(view: View, verdict: Verdict, reason: Reason, score: float) -> Classified:
    return Classified(
        verdict=verdict,
        reason=reason,
        score=score,
        tail=int(view.binned.start[view.tail]),
        trend=view.trend,
        binned=view.binned,
        segmentation=view.segmentation,
    )


# ---- the last regime grows ---------------------------------------------------------------


def _growing(  # noqa: PLR0911 one return per rule, in the order they hold
    view: View, policy: Policy, planned_x: float | None
) -> Classified:
    prepared, x = view.prepared, view.binned.x
    tail_x = float(x[-1] - x[view.tail])
    span_x, plateau_x = _undiminished(view)
    posterior = posterior_leak(view, policy, span_x, plateau_x)
    base = replace(
        _answer(view, Verdict.INCONCLUSIVE, Reason.STILL_CLIMBING, 1 - posterior),
        posterior_leak=posterior,
        span_x=span_x,
    )
    if _negligible(prepared, view.trend, policy, planned_x):
        return replace(base, verdict=Verdict.STABLE, reason=Reason.NEGLIGIBLE, score=0.9)
    if prepared.role in NO_METERS:
        return replace(base, reason=Reason.NOT_A_METER)
    if prepared.role is Role.COLLECTED_HEAP and prepared.falls < 3:
        return replace(base, reason=Reason.NOT_COLLECTED)
    if not prepared.floors and _reclaimed(view, policy, tail_x):
        return replace(base, reason=Reason.RECLAIMED_BEFORE)
    if _slowing(view, policy):
        return replace(base, reason=Reason.SLOWING)
    if posterior < policy.leak_posterior:
        return base
    if not _steady(view, policy):
        return replace(base, reason=Reason.IRREGULAR)
    reason = Reason.GROWTH_AFTER_PLATEAU if plateau_x > 0 else Reason.OUTLASTS_WARMUP
    return replace(base, verdict=Verdict.LEAK, reason=reason, score=posterior)


def posterior_leak(view: View, policy: Policy, span_x: float, plateau_x: float) -> float:
    """Posterior probability that growth of this length and regularity is a leak, 0..1."""
    length = policy.warmup_lengths[view.prepared.axis.kind]
    odds = policy.prior_leak_odds / length.survival(span_x)
    if plateau_x > 0:
        odds *= policy.plateau_odds
    return odds / (1 + odds)


def _rate(view: View, piece: Piece) -> float:
    """Mean rate of a regime with the jump that led out of it."""
    x, y = view.binned.x, view.binned.y
    last = min(piece.last, len(x) - 1)
    dx = float(x[last] - x[piece.first])
    return float(y[last] - y[piece.first]) / dx if dx > 0 else 0.0


def _undiminished(view: View) -> tuple[float, float]:
    """(axis units that growth has lasted at this rate, length of the plateau before, or 0)."""
    x, slope = view.binned.x, view.trend.slope
    start, plateau = view.tail, 0.0
    for piece in reversed([p for p in view.segmentation.pieces if p.first < view.tail]):
        rate = _rate(view, piece)
        if abs(rate) < 0.25 * slope and piece.last - piece.first >= 2:
            plateau = float(x[start] - x[piece.first])
            break
        if not 0.4 * slope <= rate <= 2.0 * slope:
            break
        start = piece.first
    return float(x[-1] - x[start]), plateau


def _negligible(prepared: Prepared, fitted: Trend, policy: Policy, planned_x: float | None) -> bool:
    horizon = max(policy.horizons[prepared.axis.kind], policy.horizon_runs * prepared.run)
    if planned_x is not None and planned_x > prepared.x[-1]:
        horizon = float(planned_x - prepared.x[-1])
    reached = float(prepared.y[-1] - prepared.y[0])
    grown = (fitted.slope + 2 * fitted.error) * horizon
    return max(grown, reached) < policy.negligible_share * prepared.level


def _reclaimed(view: View, policy: Policy, tail_x: float) -> bool:
    """As much as the present growth was given back before."""
    before = view.binned.y[: view.tail + 1]
    if len(before) < 2:
        return False
    drawdown = float(np.max(np.maximum.accumulate(before) - before))
    grown = view.trend.slope * tail_x
    return drawdown > 10 * view.prepared.noise and grown < policy.reclaimed_factor * drawdown


def _slowing(view: View, policy: Policy) -> bool:
    x, y = view.binned.x[view.tail :], view.binned.y[view.tail :]
    if len(x) < 10:
        return False
    half = len(x) // 2
    early, late = trend(x[:half], y[:half], view.floor), trend(x[half:], y[half:], view.floor)
    gap = early.slope - late.slope
    return late.slope < policy.slowing * early.slope and gap > 2 * math.hypot(
        early.error, late.error
    )


def _steady(view: View, policy: Policy) -> bool:
    """Eight block medians of the growing regime lie on a line and nearly all step up."""
    first = int(view.binned.start[view.tail])
    x, y = view.prepared.x[first:], view.prepared.y[first:]
    if len(y) < 16:
        return True
    blocks = bins(x, y, 8)
    level, slope = line(blocks.x, blocks.y)
    rest = blocks.y - level - slope * (blocks.x - blocks.x.mean())
    power = float(((blocks.y - level) ** 2).sum())
    steps_up = int((np.diff(blocks.y) > 0).sum())
    return power > 0 and 1 - float(rest @ rest) / power >= policy.gate_r2 and steps_up >= 6


# ---- the last regime does not grow --------------------------------------------------------


def _not_growing(view: View, policy: Policy) -> Classified:
    prepared, x, y = view.prepared, view.binned.x, view.binned.y
    run = float(x[-1] - x[0])
    rise = float(np.median(y[view.tail :]) - np.min(y[: max(1, min(3, view.tail or 3))]))
    warm = rise > policy.calm_growth * prepared.level
    tolerance = policy.calm_growth * prepared.level / max(run, 1e-300)
    flat = view.upper_slope < tolerance or (view.trend.slope <= 0 and view.p_growth > 0.5)
    flat = flat or view.growing < policy.flat_doubt
    if not flat:
        return _answer(view, Verdict.INCONCLUSIVE, Reason.UNCERTAIN_TREND, 0.5)
    wait = _stair_wait(view, policy)
    if wait is not None:
        return replace(_answer(view, Verdict.INCONCLUSIVE, Reason.RECENT_STEP, 0.5), need_x=wait)
    verdict = Verdict.WARMUP if warm else Verdict.STABLE
    return _answer(view, verdict, _calm_reason(view, warm), 1 - policy.alpha)


def _calm_reason(view: View, warm: bool) -> Reason:
    if view.prepared.floors:
        return Reason.BOUNDED_CYCLES
    if warm:
        return Reason.PLATEAU
    return Reason.FALLING if view.trend.t < -3 else Reason.FLAT


def _stair_wait(view: View, policy: Policy) -> float | None:
    """Axis units still to wait after the last of at least three upward steps, or None."""
    x, y, n = view.binned.x, view.binned.y, len(view.binned.x)
    least = max(6 * view.floor, 1e-3 * view.prepared.level)
    ups = [
        float(x[p.first])
        for p in view.segmentation.pieces
        if p.first > 0 and float(y[min(p.first + 1, n - 1)] - y[max(p.first - 2, 0)]) > least
    ]
    if len(ups) < 3:
        return None
    gap = float(np.mean(np.diff(ups[-5:])))
    wait = policy.stair_waits * gap - (float(x[-1]) - ups[-1])
    return wait if wait > 0 else None

"""From a prepared series to a verdict: is the last regime flat or growing, and what is growth?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from memdiag.analysis import blocks, calm, climbing
from memdiag.analysis.prepare import Prepared
from memdiag.analysis.saturation import is_bending, is_converging
from memdiag.analysis.segmentation import Binned, Segmentation
from memdiag.analysis.stairs import Stairs, stairs, stairs_to_the_edge
from memdiag.analysis.trend import Trend, trend
from memdiag.analysis.view import View, look
from memdiag.analysis.waves import SLIGHT_TURN, TURN
from memdiag.findings import Reason, Verdict
from memdiag.model import AxisKind, Role
from memdiag.policy import NO_METERS, PAGES, Policy

LAST, LAST_AT_MOST = 100, 20
"""One in so many readings is the end of a run, and so many of them at most (chosen)."""

CALM = (Verdict.STABLE, Verdict.WARMUP)


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


def classify(prepared: Prepared, policy: Policy, planned_x: float | None = None) -> Classified:
    """Verdict on one prepared series. `planned_x`: where the run is planned to end."""
    early = _too_little(prepared, policy)
    if early is not None:
        return early
    view = look(prepared, policy)
    found = _by_regimes(view, policy, planned_x)
    if found.reason in PENDING:
        found = _but_for_the_last(found, prepared, policy, planned_x)
        found = _but_for_one_below(found, prepared, policy, planned_x)
    if found.verdict in CALM:
        return found
    found = _by_waves(view, found, policy, planned_x)
    if found.verdict is Verdict.LEAK:
        return found
    if _is_unclear(found, policy) and calm.is_immaterial(prepared, found.tail, policy):
        return _calm_after_all(found, prepared, Reason.FLAT, policy)
    if found.reason not in MAY_BE_OVER:
        return found
    lately = climbing.negligible_lately(prepared, policy, planned_x)
    if lately is None:
        return found
    tail, fitted = lately
    found = replace(found, tail=tail, trend=fitted)
    return _calm_after_all(found, prepared, Reason.NEGLIGIBLE, policy)


def _is_unclear(found: Classified, policy: Policy) -> bool:
    if found.reason is Reason.FEW_PAGES and found.trend is not None:
        return found.trend.slope * found.span_x < policy.touched_least_bytes
    return found.reason in UNCLEAR


def _but_for_the_last(
    found: Classified, prepared: Prepared, policy: Policy, planned_x: float | None
) -> Classified:
    """A little that moves in the last hundredth of the run makes no doubt of what was calm before:
    at its end a program does what it never did. A step up may be the next of its staircase.
    """
    x, y = prepared.x, prepared.y
    last = min(len(y) // LAST, LAST_AT_MOST)
    if last < 1 or prepared.floors or x[-1] - x[-1 - last] > 2 * prepared.run / LAST:
        return found
    rise = float(y[-last:].max() - y[:-last].max())
    few = policy.touched_bytes if prepared.role in PAGES else 0.0
    little = max(policy.calm_growth * prepared.level, few)
    if rise > (0.0 if found.reason is Reason.RECENT_STEP else little):
        return found
    before = replace(prepared, x=x[:-last], y=y[:-last])
    calmer = _by_regimes(look(before, policy), policy, planned_x)
    return calmer if calmer.verdict in CALM else found


def _but_for_one_below(
    found: Classified, prepared: Prepared, policy: Policy, planned_x: float | None
) -> Classified:
    """One last reading that is hardly lower than the one before makes no doubt of a leak: the first
    of a plateau would look like this, and so would any other."""
    x, y = prepared.x, prepared.y
    if found.reason not in PENDING or prepared.floors or len(y) < policy.few_samples:
        return found
    if y[-1] > y[-2]:
        return found
    before = replace(prepared, x=x[:-1], y=y[:-1])
    leak = _by_regimes(look(before, policy), policy, planned_x)
    grown = float(y[-2] - y[min(leak.tail, len(y) - 2)])
    return leak if leak.verdict is Verdict.LEAK and y[-2] - y[-1] <= SLIP * grown else found


PENDING = (Reason.UNCERTAIN_TREND, Reason.RECENT_STEP)
"""Doubts that a last reading may have raised."""
SLIP = 0.05
"""A last reading lower by no more than this part of what a leak grew by is its noise (chosen)."""


def _by_waves(view: View, found: Classified, policy: Policy, planned_x: float | None) -> Classified:
    """Growth under slow waves is judged on their turning points; `found` where there are few."""
    prepared = view.prepared
    if prepared.floors or len(prepared.y) < policy.wave_samples:
        return found
    leaks = found.verdict is Verdict.LEAK
    slow = calm.all_waves(view, SLIGHT_TURN if leaks else TURN)
    if slow is None or slow.falls < policy.wave_falls:
        return found
    goes_on = slow.goes_on(policy.slowing)
    if leaks and not goes_on:
        return replace(found, verdict=Verdict.INCONCLUSIVE, reason=Reason.SLOWING, score=0.5)
    if leaks or not goes_on or slow.p_rise >= policy.alpha:
        return found
    turned = replace(
        prepared, x=slow.x, y=slow.y, noise=slow.scatter, floors=True, middles=slow.y, blur=0.0
    )
    leak = _growing(blocks.from_bin(look(turned, policy), 0), policy, planned_x)
    if leak.verdict is not Verdict.LEAK:
        return found
    tail = int(np.searchsorted(prepared.x, slow.x[0]))
    return replace(leak, tail=tail, binned=found.binned, segmentation=found.segmentation)


def _calm_after_all(
    found: Classified, prepared: Prepared, stable: Reason, policy: Policy
) -> Classified:
    if calm.began_lower(prepared, policy):
        return replace(found, verdict=Verdict.WARMUP, reason=Reason.PLATEAU)
    return replace(found, verdict=Verdict.STABLE, reason=stable)


UNCLEAR = (
    Reason.UNCERTAIN_TREND,
    Reason.RECENT_STEP,
    Reason.RECLAIMED_BEFORE,
    Reason.IRREGULAR,
)
"""Doubts about movements that may be too small to care; steady growth is none of them."""

MAY_BE_OVER = (
    Reason.UNCERTAIN_TREND,
    Reason.RECLAIMED_BEFORE,
    Reason.IRREGULAR,
    Reason.SLOWING,
    Reason.STILL_CLIMBING,
)
"""Doubts that a level last half settles. A step that others may follow is none of them: it may be
longer until the next than such a half lasts."""


def _by_regimes(view: View, policy: Policy, planned_x: float | None) -> Classified:
    first = _judge(view, policy, planned_x)
    share = view.prepared.share_after(first.tail, policy.tail_samples)
    if first.verdict is Verdict.LEAK or (first.verdict in CALM and share > policy.settled_share):
        return first
    start = blocks.steady_from(view, policy)
    if start is None:
        return _but_for_a_rest(first, view, share, policy)
    line_view = blocks.from_bin(view, start)
    coarse = _growing(line_view, policy, planned_x)
    if coarse.verdict is not Verdict.LEAK:
        return coarse if first.verdict in CALM else first
    if blocks.rests(view, share, policy):
        return first if first.verdict in CALM else _unclear(first)
    if blocks.goes_on_slowly(view, line_view, share, policy):
        return replace(first, verdict=Verdict.INCONCLUSIVE, reason=Reason.SLOWING, score=0.5)
    if line_view.p_growth < policy.alpha and share < policy.short_share:
        return coarse
    if first.verdict in CALM:
        return _unclear(first)
    return coarse if line_view.p_growth < policy.alpha else first


def _but_for_a_rest(first: Classified, view: View, share: float, policy: Policy) -> Classified:
    """`first` unless the run climbed as a whole, and what is called calm may be a rest of it."""
    if first.reason is Reason.PLATEAU and share < policy.short_share:
        wait = blocks.still_to_rest(view, policy)
        if wait > 0:
            return replace(_unclear(first), reason=Reason.RECENT_STEP, need_x=wait)
    falls = first.verdict is Verdict.WARMUP and calm.falls(view, policy)
    open_end = falls or first.verdict is Verdict.STABLE
    doubtful = open_end and blocks.climbs_as_a_whole(view, policy, policy.block_r2)
    return _unclear(first) if doubtful else first


def _unclear(calm: Classified) -> Classified:
    return replace(calm, verdict=Verdict.INCONCLUSIVE, reason=Reason.UNCERTAIN_TREND)


def _too_little(prepared: Prepared, policy: Policy) -> Classified | None:
    """Answers that need no statistics: too few, all equal."""
    y = prepared.y
    too_few = Classified(verdict=Verdict.INCONCLUSIVE, reason=Reason.TOO_FEW_SAMPLES, score=0.9)
    if len(y) < policy.min_samples:
        return too_few
    if float(y.max()) == float(y.min()):
        return Classified(verdict=Verdict.STABLE, reason=Reason.FLAT, score=1 - 0.5 / len(y))
    brief = prepared.axis.kind is AxisKind.SECONDS and len(y) < policy.few_samples
    brief = brief and float(prepared.x[-1] - prepared.x[0]) < policy.least_span_s
    return too_few if brief else None


def _judge(view: View, policy: Policy, planned_x: float | None) -> Classified:
    steps = stairs(view)
    if steps is not None:
        found = _staircase(view, steps, policy, planned_x)
        if found is not None:
            return found
    edge = stairs_to_the_edge(view) if steps is None else None
    if edge is not None:
        found = _staircase(view, edge, policy, planned_x)
        if found is not None and (found.verdict is Verdict.LEAK or calm.is_one_step(view, policy)):
            return found
    if calm.is_one_step(view, policy):
        return _not_growing(view, steps, policy)
    if view.p_growth < policy.alpha and view.growing > policy.flat_doubt:
        return _growing(view, policy, planned_x)
    whole = blocks.from_bin(view, climbing.undiminished(view, policy).first_bin)
    one = climbing.is_one_line(whole, policy) or climbing.speeds_up(whole)
    if whole.p_growth < policy.alpha and one:
        return _growing(whole, policy, planned_x)
    return _not_growing(view, steps, policy)


def _answer(view: View, verdict: Verdict, reason: Reason, score: float) -> Classified:
    return Classified(
        verdict=verdict,
        reason=reason,
        score=score,
        tail=view.first_sample,
        trend=view.trend,
        binned=view.binned,
        segmentation=view.segmentation,
    )


def _staircase(
    view: View, steps: Stairs, policy: Policy, planned_x: float | None
) -> Classified | None:
    """A staircase that goes on, weighed like growth along its steps; None if it is none."""
    if not steps.goes_on(policy):
        return None
    fitted = trend(steps.at, steps.level, view.floor)
    span = climbing.Span(
        first_bin=steps.first_bin, length_x=float(steps.at[-1] - steps.at[0]), plateau_x=0.0
    )
    posterior = climbing.posterior_leak(view, policy, span, 1.0)
    base = replace(
        _answer(view, Verdict.INCONCLUSIVE, Reason.RECENT_STEP, 1 - posterior),
        tail=int(view.binned.start[steps.first_bin]),
        trend=fitted,
        posterior_leak=posterior,
        span_x=float(view.binned.x[-1] - view.binned.x[steps.first_bin]),
        need_x=max(steps.still_to_wait(policy), 0.0) or None,
    )
    barred = _barred(view, base, policy, planned_x)
    if barred is not None:
        return barred
    if posterior < policy.leak_posterior or fitted.p_growth > policy.alpha:
        return base
    return replace(base, verdict=Verdict.LEAK, reason=Reason.OUTLASTS_WARMUP, score=posterior)


def _barred(
    view: View, base: Classified, policy: Policy, planned_x: float | None
) -> Classified | None:
    """Growth that is no evidence of a leak whatever its shape, or None."""
    prepared = view.prepared
    slope = 0.0 if base.trend is None else base.trend.slope
    if climbing.is_negligible(prepared, slope, policy, planned_x):
        return replace(base, verdict=Verdict.STABLE, reason=Reason.NEGLIGIBLE, score=0.9)
    if prepared.role in NO_METERS:
        return replace(base, reason=Reason.NOT_A_METER)
    if 0 < slope * prepared.run < prepared.pool:
        return replace(base, reason=Reason.STILL_CLIMBING)
    missing = climbing.few_pages(prepared, slope * base.span_x, policy)
    if missing > 0:
        return replace(base, reason=Reason.FEW_PAGES, need_x=missing / slope)
    if prepared.role is Role.COLLECTED_HEAP and not climbing.is_collected(view, policy):
        return replace(base, reason=Reason.NOT_COLLECTED)
    return None


def _growing(view: View, policy: Policy, planned_x: float | None) -> Classified:
    span = climbing.undiminished(view, policy)
    factor = climbing.regular_odds(view, policy)
    posterior = climbing.posterior_leak(view, policy, span, factor)
    base = replace(
        _answer(view, Verdict.INCONCLUSIVE, Reason.STILL_CLIMBING, 1 - posterior),
        posterior_leak=posterior,
        span_x=span.length_x,
    )
    barred = _barred(view, base, policy, planned_x)
    if barred is not None:
        return barred
    if is_converging(view, policy, posterior):
        return replace(base, verdict=Verdict.WARMUP, reason=Reason.PLATEAU, score=0.9)
    doubt = _doubt(view, policy, posterior)
    if doubt is not None:
        return _cycles(view, policy, replace(base, reason=doubt))
    if span.plateau_x > 0:
        reason = Reason.GROWTH_AFTER_PLATEAU
    else:
        reason = Reason.REGULAR_GROWTH if factor > 1 else Reason.OUTLASTS_WARMUP
    return replace(base, verdict=Verdict.LEAK, reason=reason, score=posterior)


def _doubt(view: View, policy: Policy, posterior: float) -> Reason | None:
    """Why growth is not called a leak, or None."""
    if not view.prepared.floors and climbing.is_reclaimed(view, policy):
        return Reason.RECLAIMED_BEFORE
    if climbing.is_return(view, policy):
        return Reason.RECLAIMED_BEFORE
    if climbing.is_slowing(view, policy) or climbing.is_faint(view, policy):
        return Reason.SLOWING
    x = view.binned.x
    length = float(x[-1] - x[view.tail])
    rise, blur = view.trend.slope * length, view.prepared.blur
    surely = rise - policy.blur_errors * view.trend.error * length
    missed = blur > 0 and min(surely, rise / policy.blur_factor) < blur
    if missed or rise < policy.grown_quanta * view.prepared.quantum:
        return Reason.UNCERTAIN_TREND
    if posterior < policy.leak_posterior or view.tail_samples < policy.tail_samples:
        return Reason.STILL_CLIMBING
    if is_bending(view, policy):
        return Reason.SLOWING
    steady = climbing.is_steady(view, policy) and not climbing.is_one_jump(view)
    return None if steady else Reason.IRREGULAR


def _cycles(view: View, policy: Policy, base: Classified) -> Classified:
    """Bounded cycles where nothing is kept; `base` otherwise."""
    prepared = view.prepared
    kept = prepared.floors or not calm.nothing_kept(prepared.y, prepared.noise, policy)
    slow = calm.recent_waves(view)
    if kept or prepared.teeth_climb > policy.teeth_errors or calm.waves_grow(slow, policy):
        return base
    if max(prepared.falls, 0 if slow is None else slow.falls) < policy.cycles:
        return base
    verdict = Verdict.WARMUP if calm.rose(view, policy) else Verdict.STABLE
    return replace(base, verdict=verdict, reason=Reason.BOUNDED_CYCLES, score=0.9)


def _not_growing(view: View, steps: Stairs | None, policy: Policy) -> Classified:
    if not calm.is_flat(view, policy):
        base = _answer(view, Verdict.INCONCLUSIVE, Reason.UNCERTAIN_TREND, 0.5)
        if is_converging(view, policy, 0.0):
            return replace(base, verdict=Verdict.WARMUP, reason=Reason.PLATEAU, score=0.9)
        return _cycles(view, policy, base)
    grows = calm.middles_grow(view, policy) or calm.rises_all_the_time(view, policy)
    if grows or calm.waves_grow(calm.recent_waves(view), policy):
        return _answer(view, Verdict.INCONCLUSIVE, Reason.UNCERTAIN_TREND, 0.5)
    wait = 0.0 if steps is None else steps.still_to_wait(policy)
    if wait > 0:
        base = _answer(view, Verdict.INCONCLUSIVE, Reason.RECENT_STEP, 0.5)
        return _cycles(view, policy, replace(base, need_x=wait))
    if calm.is_too_short(view, policy) or calm.still_rises(view, policy):
        return _answer(view, Verdict.INCONCLUSIVE, Reason.RECENT_STEP, 0.5)
    warm = calm.rose(view, policy)
    verdict = Verdict.WARMUP if warm else Verdict.STABLE
    return _answer(view, verdict, _calm_reason(view, warm), 1 - policy.alpha)


def _calm_reason(view: View, warm: bool) -> Reason:
    if view.prepared.floors:
        return Reason.BOUNDED_CYCLES
    if warm:
        return Reason.PLATEAU
    return Reason.FALLING if view.trend.t < -3 else Reason.FLAT

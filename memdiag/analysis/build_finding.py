"""A finding: the decision on one series with its rates, plateau, forecasts and phases."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.confidence import confidence
from memdiag.analysis.decision.case import Context, Decision
from memdiag.analysis.decision.peak_trend import peaks_grow
from memdiag.analysis.forecasting import projection as forecast
from memdiag.analysis.forecasting.remaining_samples import need_more
from memdiag.analysis.policy import Policy
from memdiag.analysis.preprocessing.prepare import MOST, Prepared
from memdiag.analysis.stats.extremes import extremes
from memdiag.analysis.stats.slope_test import Trend, trend
from memdiag.values.findings import Finding, Forecast, Interval, LimitHit, Plateau, Segment
from memdiag.values.measurements import Phases, Series, Unit
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

if TYPE_CHECKING:
    from memdiag.analysis.attribution.phases import Attributed
    from memdiag.values.measurements import Floats

TRACE_POINTS = 300
"""Most points of a finding's thumbnail: wider than any terminal (heuristic)."""


def build_finding(
    series: Series,
    prepared: Prepared,
    decision: Decision,
    policy: Policy,
    context: Context,
    *,
    with_segments: bool = True,
) -> Finding:
    """Everything that a report shows of one series. Values are as recorded, growth is memory.

    with_segments: else it has none. Only reports show them, and they take a tenth of the time.
    """
    decision = _whole_plateau(prepared, decision, policy)
    growth, projection = _growth(prepared, decision, policy), _projection(prepared, decision)
    pace, per_epoch = prepared.seconds_per_x, series.x_per_epoch
    x, y, attributed = prepared.all_x, prepared.recorded_y, _phases(series, prepared, decision)
    ahead = forecast.positions(_first(x), _last(x), context.planned_x)
    end = max(len(y) - prepared.dropped_end, 1)  # (the tear-down is no part of the run)
    return Finding(
        metric=series.metric,
        column=series.column,
        process=series.process,
        role=series.role,
        unit=series.unit,
        axis=prepared.axis,
        verdict=decision.verdict,
        confidence=confidence(decision, prepared, policy),
        reason=decision.reason,
        samples=prepared.samples,
        first_x=_first(x),
        last_x=_last(x),
        start_value=_first(y),
        latest_value=_last(y[:end]),
        peak_value=_peak(prepared),
        segments=_segments(prepared, decision) if with_segments else (),
        growth_per_x=growth,
        growth_per_s=growth.scaled(1 / pace) if growth and pace and pace > 0 else None,
        growth_per_epoch=growth.scaled(per_epoch) if growth and per_epoch is not None else None,
        plateau=_plateau(prepared, decision),
        onset_x=_onset(prepared, decision),
        forecasts=_forecasts(projection, ahead),
        limit_hits=_limit_hits(prepared, projection, series, context),
        need_more=need_more(decision, prepared, policy, context.planned_x),
        phases=() if attributed is None else attributed.phases,
        recurring=None if attributed is None else attributed.recurring,
        trace=_trace(x[:end], y[:end]),
        tops=_tops(prepared),
        peaks_grow=peaks_grow(decision, prepared, policy),
        restarts=prepared.restarts,
        planned=ahead == (context.planned_x,),
        dropped_start=prepared.dropped_start,
        dropped_end=prepared.dropped_end,
        falling=series.falling,
        trail=decision.trail,
    )


def _first(values: Floats) -> float:
    return float(values[0]) if len(values) else math.nan


def _last(values: Floats) -> float:
    return float(values[-1]) if len(values) else math.nan


def _growth(prepared: Prepared, decision: Decision, policy: Policy) -> Interval | None:
    """Rate of the last regime with its 95% interval.

    Wider than the fit's own: both ends may be off by an allocator step or by what samples miss of
    a cycle (each uniform), and the regime's start was picked (`Policy.rate_widening`).
    """
    fitted, tail_x = _fitted(prepared, decision), prepared.x[decision.tail :]
    if fitted is None:
        return Interval.around(0.0) if len(prepared.x) >= 4 else None
    run = max(float(tail_x[-1] - tail_x[0]), 1e-300)
    coarse = math.hypot(prepared.quantum, prepared.blur) / math.sqrt(3) / run
    half = policy.reporting.rate_widening * math.hypot(fitted.half_width(), 1.96 * coarse)
    return Interval.around(fitted.slope, half)


HEAD = 0.2
"""First part of a leak's regime that its rate is not taken from (heuristic)."""
LEAST_BINS = 8
"""Fewest bins that must be left without it (heuristic)."""


def _fitted(prepared: Prepared, decision: Decision) -> Trend | None:
    """The trend of the last regime; of a leak without the head of a regime whose start was picked,
    where the end of a warm-up, or a plateau, may reach into it."""
    binned, fitted = decision.binned, decision.trend
    if decision.verdict is not Verdict.LEAK or decision.tail == 0 or binned is None:
        return fitted
    start = int(np.searchsorted(binned.start, decision.tail))
    first = start + round(HEAD * (len(binned.x) - start))
    floor = binned.floor(prepared.noise)
    if len(binned.x) - first < LEAST_BINS or fitted is None:
        return fitted
    of_bins = trend(binned.x[start:], binned.y[start:], floor)
    if not math.isclose(of_bins.slope, fitted.slope, rel_tol=1e-6):
        return fitted  # of stairs' edges, or of waves' turning points
    return trend(binned.x[first:], binned.y[first:], floor)


def _segments(prepared: Prepared, decision: Decision) -> tuple[Segment, ...]:
    """The regimes in recorded values, each with its slope's interval."""
    binned, segmentation = decision.binned, decision.segmentation
    if binned is None or segmentation is None:
        return ()
    floor = binned.floor(prepared.noise)
    out = []
    for piece in segmentation.pieces:
        x, y = binned.x[piece.first : piece.last], binned.y[piece.first : piece.last]
        if len(x) < 2:
            continue
        half_run = piece.slope * (x - x.mean())
        level = float(y.mean()) + _lift(prepared, x, float(y.mean()) + half_run)
        fitted = trend(x, y, floor)
        out.append(
            Segment(
                start_x=float(x[0]),
                end_x=float(x[-1]),
                start_value=prepared.sign * (level + float(half_run[0])),
                end_value=prepared.sign * (level + float(half_run[-1])),
                samples=int(binned.start[piece.last] - binned.start[piece.first]),
                slope_per_x=Interval.around(prepared.sign * fitted.slope, fitted.half_width()),
            )
        )
    return tuple(out)


def _lift(prepared: Prepared, x: Floats, line: Floats) -> float:
    """How far all readings lie above a line; 0 if one does not.

    A sawtooth's line is fitted to where its teeth would begin if no sample missed the fall.
    """
    inside = (prepared.all_x >= x[0]) & (prepared.all_x <= x[-1])
    above = prepared.all_y[inside] - np.interp(prepared.all_x[inside], x, line)
    return max(0.0, float(above.min())) if len(above) else 0.0


def _tail_of_all(prepared: Prepared, decision: Decision) -> slice:
    """The last regime among all samples (floors and ends included at their places)."""
    if not len(prepared.x):
        return slice(0, 0)
    start = prepared.x[min(decision.tail, len(prepared.x) - 1)]
    first = int(np.searchsorted(prepared.all_x, start))
    return slice(first, len(prepared.all_x) - prepared.dropped_end)


def _whole_plateau(prepared: Prepared, decision: Decision, policy: Policy) -> Decision:
    """The decision on a stable series with the whole plateau as its last regime.

    The last regime may be three samples of a tear-down, which do not show the rate.
    """
    if decision.verdict not in STABLE_OR_WARMUP or len(prepared.x) < 2:
        return decision
    binned, first = decision.binned, _plateau_start(prepared, decision, policy)
    if decision.verdict is Verdict.WARMUP and first == 0:
        first = _level_since(prepared, policy)
    if binned is None or first == decision.tail or (first > decision.tail > 0):
        return decision
    bin_first = min(int(np.searchsorted(binned.start, first)), len(binned.x) - 2)
    fitted = trend(binned.x[bin_first:], binned.y[bin_first:], binned.floor(prepared.noise))
    return replace(decision, tail=first, trend=fitted)


def _level_since(prepared: Prepared, policy: Policy) -> int:
    """The first reading that is as high as those of the second half, of a warm-up that is one
    regime with its plateau."""
    y = prepared.y
    low = float(y[len(y) // 2 :].min()) - policy.common.stable_growth * prepared.level
    return int(np.argmax(y >= low))


def _plateau(prepared: Prepared, decision: Decision) -> Plateau | None:
    """The level of a stable series: since when, and its range."""
    if decision.verdict not in STABLE_OR_WARMUP or len(prepared.x) < 2:
        return None
    tail = _tail_of_all(prepared, decision)
    values = prepared.recorded_y[tail]
    since = float(prepared.x[decision.tail])
    before = float(prepared.x[max(decision.tail - 1, 0)])
    return Plateau(
        since_x=Interval(value=since, low=before, high=since),
        low_value=float(values.min()),
        high_value=float(values.max()),
        lasted_x=float(prepared.all_x[tail][-1]) - since,
    )


def _plateau_start(prepared: Prepared, decision: Decision, policy: Policy) -> int:
    """The first sample of the plateau that ends the run, which may precede the last regime.

    A small fall at the end makes a regime of its own without ending the plateau: earlier
    regimes belong to it while they do not rise and lie at its level, or slightly above.
    """
    binned, segmentation, first = decision.binned, decision.segmentation, decision.tail
    if binned is None or segmentation is None:
        return first
    low, high = float(prepared.y[first:].min()), float(prepared.y[first:].max())
    high += max(high - low, policy.common.stable_growth * prepared.level)
    few = policy.common.immaterial_share * prepared.level
    for piece in reversed([p for p in segmentation.pieces if binned.start[p.last] <= first]):
        y = binned.y[piece.first : piece.last]
        rises = not piece.flat and piece.slope > 0 and float(np.ptp(y)) > few
        if rises or float(y.min()) < low - few or float(y.max()) > high:
            break
        first = int(binned.start[piece.first])
    return first


def _onset(prepared: Prepared, decision: Decision) -> Interval | None:
    """Where the growth that makes a leak began: between two samples at best.

    Its length is counted between middles of bins; growth since the first bin is since the start.
    """
    if decision.verdict is not Verdict.LEAK:
        return None
    middles = prepared.x if decision.binned is None else decision.binned.x
    start_x = float(middles[-1]) - decision.span_x
    if start_x <= float(middles[0]) + 1e-9 * prepared.run:
        start_x = float(prepared.x[0])
    index = int(np.searchsorted(prepared.x, start_x - 1e-9 * max(abs(start_x), 1.0)))
    low = float(prepared.x[max(index - 1, 0)])
    high = float(prepared.x[min(index + 1, len(prepared.x) - 1)])
    return Interval(value=start_x, low=low, high=high)


def _projection(prepared: Prepared, decision: Decision) -> forecast.Projection | None:
    x, y = prepared.x[decision.tail :], prepared.y[decision.tail :]
    if len(x) < 2 or prepared.sign < 0 or not float(np.ptp(x)) > 1 / MOST:
        return None
    if decision.verdict in STABLE_OR_WARMUP:
        return forecast.stay(x, y)
    return forecast.grow_on(x, y, may_stop=decision.verdict is Verdict.INCONCLUSIVE)


def _forecasts(
    projection: forecast.Projection | None, ahead: tuple[float, ...]
) -> tuple[Forecast, ...]:
    if projection is None:
        return ()
    return tuple(Forecast(at_x=at, value=projection.at(at)) for at in ahead)


def _limit_hits(
    prepared: Prepared, projection: forecast.Projection | None, series: Series, context: Context
) -> tuple[LimitHit, ...]:
    if projection is None or series.unit is not Unit.BYTES:
        return ()
    return forecast.limit_hits(
        projection,
        [limit for limit in context.limits if limit.holds_for(series.metric, series.process)],
        series.role,
        run=prepared.run,
        seconds_per_x=prepared.seconds_per_x,
    )


def _phases(series: Series, prepared: Prepared, decision: Decision) -> Attributed | None:
    """Growth by phase over the last regime, from the samples as they were recorded."""
    tail = _tail_of_all(prepared, decision)
    phases = None if decision.verdict in STABLE_OR_WARMUP else series.phases
    if phases is None or prepared.axis != series.axis or tail.stop - tail.start < 3:
        return None
    keep = (np.abs(series.x) < MOST) & (np.abs(series.y) < MOST)
    if series.generation is not None and keep.any():
        keep &= series.generation == series.generation[keep].max()
    low, high = prepared.all_x[tail.start], prepared.all_x[tail.stop - 1]
    keep &= (series.x >= low) & (series.x <= high)
    order = np.argsort(series.x[keep], kind="stable")
    codes = np.asarray(phases.codes)[keep][order]
    if not (codes >= 0).any():
        return None
    # Most recordings have no tags and need not wait for scipy.optimize.
    from memdiag.analysis.attribution.phases import attribute

    return attribute(
        series.x[keep][order],
        prepared.sign * series.y[keep][order],
        Phases(codes=codes, names=phases.names),
    )


def _peak(prepared: Prepared) -> float:
    """The highest of all readings; of a column that falls, the lowest of those that are judged."""
    if prepared.sign > 0 or not len(prepared.all_y):
        return prepared.highest
    return float(prepared.recorded_y.min())


def _tops(prepared: Prepared) -> tuple[tuple[float, float], ...]:
    """A thumbnail of the highest readings at each position, where there are several."""
    if prepared.sign < 0 or prepared.tops is prepared.all_y:
        return ()
    end = max(len(prepared.all_x) - prepared.dropped_end, 1)
    return _trace(prepared.all_x[:end], prepared.tops[:end])


def _trace(x: Floats, y: Floats) -> tuple[tuple[float, float], ...]:
    """A thumbnail that keeps peaks and floors: the least and the greatest of each stretch."""
    kept = extremes(y, TRACE_POINTS)
    return tuple(zip(x[kept].tolist(), y[kept].tolist(), strict=True))

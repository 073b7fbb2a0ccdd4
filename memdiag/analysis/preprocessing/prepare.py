"""From a recorded series to clean values: sorted, one per position, floors, without the ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.policy import EXACT_ROLES, Common, Policy
from memdiag.analysis.preprocessing.sawtooth import cycles as cycles_of
from memdiag.analysis.preprocessing.transients import lasting
from memdiag.analysis.stats.median import median
from memdiag.analysis.stats.noise import UNIFORM, least_noise
from memdiag.values.measurements import Axis, AxisKind, Role, Series, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats

    NDBool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The values that are judged.

    x, y: ascending positions and one reading each, shape (n,); "up" is always more memory.
    all_x, all_y: the same before the ends were taken off.
    tops: the highest reading at each of all_x; all_y has the lowest. highest: of all readings.
    axis: the axis judged on (time, where there are too few steps).
    seconds_per_x: recorded pace, None without a clock.
    noise: standard deviation of one sample's noise, never 0 unless all readings are 0.
    quantum: the step that readings move by, 0 where they move freely.
    level: typical absolute reading.
    floors: y holds the floors of a sawtooth or of spikes. falls: big drops seen.
    peak_x, peaks: the highest reading of each cycle and where, where y holds floors, else empty.
    teeth_climb: slope of the levels of teeth too few for floors, over its standard error.
    blur: how much a floor may be off because samples miss the moment of the drop.
    samples: readings before reduction.
    metric: name of the series.
    """

    x: Floats
    y: Floats
    all_x: Floats
    all_y: Floats
    tops: Floats
    highest: float
    axis: Axis
    role: Role
    unit: Unit
    seconds_per_x: float | None
    noise: float
    quantum: float
    level: float
    floors: bool
    falls: int
    peak_x: Floats
    peaks: Floats
    blur: float
    teeth_climb: float
    samples: int
    dropped_start: int
    dropped_end: int
    restarts: int
    sign: float
    metric: str = ""

    @property
    def recorded_y(self) -> Floats:
        """All readings with the sign that they were recorded with."""
        return -self.all_y if self.sign < 0 else self.all_y

    @property
    def run(self) -> float:
        """Axis units from the first to the last judged position."""
        return float(self.x[-1] - self.x[0]) if len(self.x) else 0.0

    def share_after(self, first: int, least: int) -> float:
        """Part of the run, 0..1, that the judged values from index `first` on cover.

        Of the way, for readings may be dense at the start and rare at the end; fewer than `least`
        of them stand for no more than what they are of all readings.
        """
        n = len(self.y)
        if n - first < least or self.run <= 0:
            return 1 - first / max(n, 1)
        return float(self.x[-1] - self.x[first]) / self.run


def prepare(series: Series, policy: Policy) -> Prepared:
    """Clean one series. Never raises; an unusable series comes back with few or no samples."""
    given = policy.preparation
    keep, restarts = _last_generation(series)
    y = np.asarray(series.y, dtype=np.float64)
    read = keep & measured(y)
    y = -y if series.falling else y
    axis, x, placed = _positions(series, read, policy)
    finite = read & placed
    whole = bool(finite.all())
    dropped_start = 0 if whole else int(np.count_nonzero(keep & np.isfinite(y) & ~finite))
    y_read = y if whole else y[finite]
    stepping = _until_the_last(series, axis, x, finite, policy)
    judged = (x, y) if whole and stepping is finite else (x[stepping], y[stepping])
    all_x, all_y, tops = _one_per_position(*judged)
    xs, ys, width = _blocks(all_x, all_y, given.most_samples)
    level = median(np.abs(ys)) if len(ys) else 0.0
    quantum = _quantum(ys, series.resolution, 1 - policy.common.short_share)
    noise, floor, least = _noises(ys, quantum, level, series.role, policy)
    last = _without_tear_down(xs, ys, noise, level, policy)
    if axis.kind is AxisKind.STEP and series.ends_with_work and last < len(ys) - 1:
        last = len(ys)  # (Beside the last step, which is over before the program is.)
    cycles = cycles_of(xs[:last], ys[:last], (noise, floor), level, policy)
    return Prepared(
        x=cycles.x,
        y=cycles.y,
        all_x=all_x,
        all_y=all_y,
        tops=tops,
        highest=float(y_read.max()) if len(y_read) else math.nan,
        axis=axis,
        role=series.role,
        unit=series.unit,
        seconds_per_x=_pace(series, stepping, (axis, x), policy),
        noise=max(math.hypot(cycles.noise, cycles.blur * UNIFORM), least)
        if cycles.floors
        else noise,
        quantum=quantum,
        level=level,
        floors=cycles.floors,
        falls=cycles.falls,
        peak_x=cycles.peak_x,
        peaks=cycles.peaks,
        blur=cycles.blur,
        teeth_climb=cycles.climb,
        samples=int(np.count_nonzero(finite)),
        dropped_start=dropped_start,
        dropped_end=min((len(ys) - last) * width, len(all_y)),
        restarts=restarts,
        sign=-1.0 if series.falling else 1.0,
        metric=series.metric,
    )


def _last_generation(series: Series) -> tuple[NDBool, int]:
    """Which samples belong to the last incarnation that has readings, and how many went before."""
    if series.generation is None or not (present := np.isfinite(series.y)).any():
        return np.ones(len(series.y), dtype=bool), 0
    generation = np.asarray(series.generation)
    known = np.unique(generation[present])
    return generation == known[-1], len(known) - 1


def _positions(series: Series, read: NDBool, policy: Policy) -> tuple[Axis, Floats, NDBool]:
    """The axis to judge on, and which samples have a place on it: time where steps are missing or
    far fewer than the samples.

    Ten epochs of a thousand samples each show more by the second than by the epoch.
    """
    x = np.asarray(series.x, dtype=np.float64)
    if _rises(x) and x[0] > -MOST and x[-1] < MOST:
        return series.axis, x, np.ones(len(x), dtype=bool)
    known = measured(x)
    placed = read & known
    distinct = _distinct(x if placed.all() else x[placed])
    readings = int(np.count_nonzero(read))
    if distinct >= min(policy.common.few_samples, readings):
        return series.axis, x, known
    if series.at_s is not None and readings >= 2 * distinct:
        at_s = np.asarray(series.at_s, dtype=float)
        return (
            Axis(name="time_s", kind=AxisKind.SECONDS),
            at_s,
            _while_stepping(series, at_s, policy),
        )
    if distinct == 0:
        rows = np.arange(len(x), dtype=float)
        return Axis(name="sample", kind=AxisKind.INDEX), rows, measured(rows)
    return series.axis, x, known


def _while_stepping(series: Series, at_s: Floats, policy: Policy) -> NDBool:
    """Which samples are timed, and neither before the first step nor after the last: the program
    starts, or is torn down. (Rows without a reading of this series tell of steps as well.)"""
    timed, known = measured(at_s), measured(series.x)
    x = series.x[known]
    few = _distinct(x) < policy.common.few_samples
    if few or series.axis.kind is not AxisKind.STEP or not bool((x[1:] >= x[:-1]).all()):
        return timed
    steps_s = at_s[known][: int(np.searchsorted(x, x[-1])) + 1]
    ended_s = min(np.nanmax(steps_s), _ended_s(series.x, at_s, policy))
    return np.asarray(timed & (at_s >= np.nanmin(steps_s)) & (at_s <= ended_s))


MOST = 1e30  # exact: no machine has this many bytes
"""Readings and positions beyond this are not measurements (NaN and infinity included)."""


def measured(values: Floats) -> NDBool:
    """Which of them are measurements. Where all are, without an array of their size in between:
    of a million readings such arrays cost more than all that is done with them."""
    if len(values) and float(values.min()) > -MOST and float(values.max()) < MOST:
        return np.ones(len(values), dtype=bool)
    return np.asarray(np.abs(values) < MOST)


def _rises(x: Floats) -> bool:
    """Return True if there are positions, and each is beyond the one before it."""
    return len(x) > 0 and bool((x[1:] > x[:-1]).all())


def _distinct(x: Floats) -> int:
    """Number of different positions; without sorting where they ascend."""
    if len(x) and bool((x[1:] >= x[:-1]).all()):
        return 1 + int(np.count_nonzero(x[1:] > x[:-1]))
    return len(np.unique(x))


def _until_the_last(
    series: Series, axis: Axis, x: Floats, finite: NDBool, policy: Policy
) -> NDBool:
    """Which readings come no later than the last step: after it the program saves, leaves, is torn
    down.

    A last step that continues and grows is not affected: a step counts by its lowest reading.
    """
    if axis.kind is not AxisKind.STEP:
        return finite
    if series.at_s is not None:
        ended_s = _ended_s(x, np.asarray(series.at_s, dtype=float), policy)
        return finite if math.isinf(ended_s) else finite & (series.at_s <= ended_s)
    last = _after_the_last(x[finite], policy)
    if last == 0:
        return finite
    kept: NDBool = finite.copy()
    kept[np.flatnonzero(finite)[-last:]] = False
    return kept


def _ended_s(x: Floats, at_s: Floats, policy: Policy) -> float:
    """When the last step was made, of a process that goes on after it; infinity if it does not.

    Steps may be told some at a time, the last of them when the program has long gone on: they are
    timed by the pace of those before. (Rows without a reading of this series tell of steps, too.)
    """
    changes = _changes(x, policy)
    if len(changes) == 0:
        return math.inf
    first_s, steps = at_s[changes], x[changes]
    of_pace = slice(-policy.common.few_samples, -1)
    pace_s = float(np.ptp(first_s[of_pace]) / np.ptp(steps[of_pace]))
    ended_s = min(float(first_s[-1]), float(first_s[-2] + (steps[-1] - steps[-2]) * pace_s))
    goes_on_s = float(np.nanmax(at_s)) - ended_s
    return ended_s if goes_on_s > policy.common.fewest * median(np.diff(first_s)) else math.inf


def _changes(x: Floats, policy: Policy) -> NDArray[np.int64]:
    """Rows at which there is another step than before; none of steps that are few, do not ascend,
    or change at the end."""
    # (Looked at first: in most recordings the step changes at the end, too, and they may be long.)
    fewest, none = policy.common.fewest, np.zeros(0, dtype=np.int64)
    if len(x) <= fewest or x[-1 - fewest] != x[-1]:
        return none
    known = np.flatnonzero(measured(x))
    steps = x[known]
    if not bool((steps[1:] >= steps[:-1]).all()):
        return none
    changes = known[1:][steps[1:] > steps[:-1]]
    return changes if len(changes) >= policy.common.few_samples else none


def _after_the_last(x: Floats, policy: Policy) -> int:
    """How many of the last readings come after the last step, where there is no clock."""
    changes = _changes(x, policy)
    if len(changes) == 0:
        return 0
    usual = max(median(np.diff(changes)), 1.0)
    here = len(x) - int(changes[-1])
    return here - math.ceil(usual) if here > policy.common.fewest * usual else 0


def _one_per_position(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Sort, and keep the floor (least reading) of samples that share a position; their highest."""
    if len(x) == 0 or _rises(x):
        return x, y, y
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    first = np.concatenate(([True], np.diff(x) > 0))
    last = np.concatenate((first[1:], [True]))
    return x[first], y[first], y[last]


def _blocks(x: Floats, y: Floats, most: int) -> tuple[Floats, Floats, int]:
    """A very long series as floors of blocks, and how many positions make one: so cost stays linear
    and small."""
    width = max(len(y) // most, 1)
    if width == 1:
        return x, y, 1
    starts = np.arange(0, len(y), width)
    return x[starts], np.minimum.reduceat(y, starts), width


def _quantum(y: Floats, resolution: float, moving: float) -> float:
    """The step of the readings: the smallest move, unless nearly all of them move."""
    d = np.abs(y[1:] - y[:-1])
    moves = d[d > 0]
    if len(moves) == 0 or len(moves) > moving * len(d):
        return resolution
    return max(float(moves.min()), resolution)


def _noises(
    y: Floats, quantum: float, level: float, role: Role, policy: Policy
) -> tuple[float, float, float]:
    """Standard deviation of one reading as seen, the least it can have, and that of its role."""
    given = policy.preparation
    least = level * (given.exact_noise if role in EXACT_ROLES else given.page_noise)
    spread = float(np.ptp(y)) if len(y) else 0.0
    floor = max(quantum * UNIFORM, least, given.exact_noise * spread)
    return max(least_noise(y), floor), floor, least


def _without_tear_down(x: Floats, y: Floats, noise: float, level: float, policy: Policy) -> int:
    """Samples left when final drops that nothing recovers from are taken as tear-down."""
    n, common = len(y), policy.common
    window = int(common.short_share * n)
    if n < common.window_samples or window < 1:
        return n
    falls = -np.diff(y)
    limit = max(2 * common.clear_noises * noise, common.stable_growth * level)
    late = n - window + np.flatnonzero(falls[n - window - 1 :] >= limit)
    for at in late[lasting(x, y, late - 1, policy)[late - 1]]:
        recovers = y[at:].max() > y[at - 1] - common.most * falls[at - 1]
        usual = falls[: at - 1].max() > common.most * falls[at - 1 :].max()
        if not (recovers or usual or _goes_on(x, y, int(at), noise, common)):
            return int(at)
    return n


def _goes_on(x: Floats, y: Floats, at: int, noise: float, common: Common) -> bool:
    """Return True if after the drop to reading `at` it grows on from where it had begun, as after a
    garbage collection: what is torn down falls lower, or does not grow again."""
    low = at + int(np.argmin(y[at:]))
    since, pace = float(y[-1] - y[low]), float(y[at - 1] - y[0]) / float(x[at - 1] - x[0])
    as_fast = since >= common.most * pace * float(x[-1] - x[low])
    chance = common.noises * noise
    return bool(y[low] >= y[:at].min() - chance) and as_fast and since > chance


def _pace(series: Series, finite: NDBool, on: tuple[Axis, Floats], policy: Policy) -> float | None:
    """Seconds per axis unit over the judged samples.

    A gap that is longer than all the others together is a stop (Ctrl-Z, a laptop that slept, a
    compilation before the first step), and no part of the pace.
    """
    axis, x = on
    if axis.kind is AxisKind.SECONDS:
        return 1.0
    if series.at_s is None or np.count_nonzero(finite) < 2:
        return None
    at, at_x = np.asarray(series.at_s, dtype=float), x
    if not finite.all():
        at, at_x = at[finite], at_x[finite]
    if not (at_x[1:] >= at_x[:-1]).all():
        order = np.argsort(at_x, kind="stable")
        at, at_x = at[order], at_x[order]
    gaps_s, gaps_x = np.diff(at), np.diff(at_x)
    while gaps_s.size > policy.reporting.stop_gaps and gaps_s.max() > gaps_s.sum() - gaps_s.max():
        rest = np.arange(gaps_s.size) != int(np.argmax(gaps_s))
        gaps_s, gaps_x = gaps_s[rest], gaps_x[rest]
    span_x, span_s = float(gaps_x.sum()), float(gaps_s.sum())
    return span_s / span_x if span_x > 0 and math.isfinite(span_s) else None

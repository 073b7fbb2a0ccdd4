"""Which phase does the growth of a series fall into, how much per event, and is that chance?

Three steps. (1) The curve of *kept* memory: what is given back again is no growth. (2) Every
interval between two samples is charged to the phase it was spent in. (3) The share of a phase is
compared with what chance would give if growth had nothing to do with the tags.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import isotonic_regression, nnls
from scipy.stats import t as student

from memdiag.analysis.chance import Cycles, rotated
from memdiag.analysis.guilt import Group, Guilt, guilty
from memdiag.analysis.passing import without_passing
from memdiag.findings import Interval, PhaseGrowth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.model import Floats, Ints, Phases

    Mask = NDArray[np.bool_]

# An excursion above the later minimum is memory in passing if it exceeds the noise this many
# times: chosen, far outside what noise does, far below what an evaluation or a batch takes.
PASSING_NOISE = 8.0
# An event grew if it kept this fraction of the phase's mean growth per event: chosen, it only has
# to part "one model copy" from "nothing".
GROWING_FRACTION = 0.25
# Tags may name the phase a sample ends (log lines) or the one it begins. The second reading is
# taken only where it explains the growth this much better (ratio of residual squares): chosen.
BEGIN_READING_RATIO = 0.5
# Events that grow by more noise standard deviations than this show one by one: chosen.
CLEAR_NOISE = 3.0
NORMAL_95 = 1.96
STILL = 0.8  # fewer moves than this part of the steps mean rounded readings: chosen
EVEN = 0.01  # widths that differ by less than this fraction are equal
FINER, MOST_EVEN = 4, 20_000  # intervals of equal width per interval, and in all
MOST_PHASES = 12  # rows of a table that a person still reads


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """Kept growth: cell c spans the intervals `edges[c]..edges[c+1]` and kept `growth[c]`."""

    edges: Ints
    growth: Floats

    def per_interval(self, width: Floats) -> Floats:
        """Growth of each interval, shape (n-1,): a cell's growth spread evenly over its width."""
        counts = np.diff(self.edges)
        total = np.add.reduceat(width, self.edges[:-1])
        rate = self.growth / np.where(total > 0, total, 1.0)
        even = self.growth / counts
        return np.where(
            np.repeat(total > 0, counts), np.repeat(rate, counts) * width, np.repeat(even, counts)
        )


def attribute(
    x: Floats, y: Floats, phases: Phases, *, noise: float | None = None, seed: int = 0
) -> tuple[PhaseGrowth, ...]:
    """Charge the growth of a regime to the phases it spans, largest share first.

    x, y: the growing regime, shape (n,), x not decreasing, y finite and rising when memory is used.
    phases: tags of the same samples. Samples before the first and after the last tag belong to no
        known phase and are left out; untagged ones in between are "outside every phase" and count.
    noise: standard deviation of a reading, in y's unit; estimated if not given.
    seed: of the random rotations used where there are too many to try them all.
    Returns () where nothing is tagged or nothing grows.

    Shares are parts of the kept growth within the tagged stretch. A parent of nested phases
    (`train` of `train/forward`) holds its children's growth, and is left out where one blamed child
    holds most of it, so that the deepest guilty phase is named.
    """
    _check(x, y, phases)
    tagged = np.flatnonzero(phases.codes >= 0)
    if len(tagged) == 0 or len(y) < 3:
        return ()
    settled, even, plain = without_passing(y, phases.codes)
    noise = _noise(settled[even]) if noise is None else noise
    kept = _kept(y, plain, noise)
    first, last = max(int(tagged[0]), 1), int(tagged[-1])
    if last < first or kept.growth.sum() <= 0:
        return ()
    groups = list(_groups(phases))
    stretch = _Stretch.of(x, phases.codes, kept, noise, first, last)
    found = [_grown(stretch, group, len(groups), seed) for group in groups]
    rows = [row for row in found if row is not None]
    if not _clear(rows, kept, noise):
        part = slice(first - 1, last + 1)
        rows = _weighed(rows, x[part], settled[part], even[part], groups, part, seed)
    rows = [row for row in rows if not _explained_by_child(row, rows)]
    return tuple(sorted(rows, key=lambda row: (-row.share, row.phase))[:MOST_PHASES])


def _clear(rows: Sequence[PhaseGrowth], kept: _Kept, noise: float) -> bool:
    """Whether the growth of one event would stand out of the noise by itself."""
    events = max((row.events for row in rows), default=1)
    return float(kept.growth.sum()) / events > CLEAR_NOISE * noise


def _weighed(
    rows: list[PhaseGrowth],
    x: Floats,
    y: Floats,
    telling: Mask,
    groups: Sequence[Group],
    part: slice,
    seed: int,
) -> list[PhaseGrowth]:
    """Let a fit of the whole course speak where single events are lost in the noise."""
    inside = [Group(name=group.name, member=group.member[part]) for group in groups]
    fitted = guilty(x, y, telling, inside, seed=seed)
    if fitted is None:
        return [replace(row, p_value=1.0) for row in rows]
    found = {guilt.name: guilt for guilt in fitted.found}
    weighed = []
    for row in rows:
        if row.phase in found:
            weighed.append(_found_guilty(row, found[row.phase]))
        elif not any(_nested(row.phase, name) or _nested(name, row.phase) for name in found):
            p_value = max(row.p_value, fitted.others[row.phase])
            weighed.append(replace(row, p_value=p_value))
    return weighed


def _nested(inner: str, outer: str) -> bool:
    return inner.startswith(outer + "/")


def _found_guilty(row: PhaseGrowth, guilt: Guilt) -> PhaseGrowth:
    """The row of a phase that growth keeps step with: its events are taken to grow alike."""
    half = NORMAL_95 * guilt.error
    return replace(
        row,
        growing_events=row.events,
        growth_per_event=Interval(
            value=guilt.per_event, low=guilt.per_event - half, high=guilt.per_event + half
        ),
        spread=None,
        share=min(1.0, guilt.share),
        p_value=guilt.p_value,
        times_elsewhere=None,
    )


def _check(x: Floats, y: Floats, phases: Phases) -> None:
    if not len(x) == len(y) == len(phases.codes):
        raise ValueError("x, y and phase codes must have the same length")


def _noise(y: Floats) -> float:
    """Standard deviation of one reading, from the falls (growth makes none) and the rounding.

    For independent noise the mean square of min(step, 0) is half the variance of a step, which is
    the variance of a reading. Readings that stand still and then move by one quantum are rounded
    to it: variance quantum^2 / 12.
    """
    if len(y) < 2:
        return 0.0
    steps = np.diff(y)
    moves = np.abs(steps[steps != 0])
    rounded = len(moves) > 0 and len(moves) < STILL * len(steps)
    quantum = float(moves.min()) if rounded else 0.0
    return math.hypot(float(np.sqrt(np.mean(np.minimum(steps, 0.0) ** 2))), quantum / 12**0.5)


def _kept(y: Floats, telling: Mask, noise: float) -> _Kept:
    """The growth that was never given back.

    The lower envelope f_i = min(y_i, y_i+1, ...) is what is still held later. Samples far above it
    hold memory in passing (an evaluation, a batch) and say nothing of when the kept part came, nor
    do those not `telling`: the growth between their neighbours is spread over them. The others are
    fitted by the least-squares nondecreasing curve (Barlow et al. 1972, pool adjacent violators),
    which averages the noise away without a bandwidth.
    """
    later = np.minimum.accumulate(np.where(telling, y, np.inf)[::-1])[::-1]
    visible = telling & (y - later <= PASSING_NOISE * noise)
    visible[0] = visible[-1] = True
    later = np.minimum(later, y)
    at = np.flatnonzero(visible)
    level = isotonic_regression(np.where(visible, y, later)[at]).x
    return _Kept(edges=at, growth=np.diff(level))


def _groups(phases: Phases) -> Iterator[Group]:
    """Every tagged phase with what is nested in it, parents that have no tag of their own too."""
    used = [phases.names[code] for code in np.unique(phases.codes) if code >= 0]
    prefixes = {"/".join(name.split("/")[:depth]) for name in used for depth in range(1, 9)}
    for name in sorted({*used, *prefixes}):
        inside = [
            code
            for code, other in enumerate(phases.names)
            if other == name or other.startswith(name + "/")
        ]
        yield Group(name=name, member=np.isin(phases.codes, inside))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """The tagged stretch, interval by interval (between sample i-1 and i), shape (m,) each."""

    ends: slice  # samples that end the intervals
    begins: slice  # samples that begin them
    growth: Floats
    width: Floats
    cell: Ints  # number of the cell that an interval belongs to
    noise: float
    at_end: bool  # an interval belongs to the phase of the sample that ends it
    ends_open: bool  # the last sample of all is tagged: its event may not be over

    @classmethod
    def of(
        cls, x: Floats, codes: Ints, kept: _Kept, noise: float, first: int, last: int
    ) -> _Stretch:
        width = np.diff(x)
        growth = kept.per_interval(width)
        cell = np.repeat(np.arange(len(kept.growth)), np.diff(kept.edges))
        stretch = cls(
            ends=slice(first, last + 1),
            begins=slice(first - 1, last),
            growth=growth[first - 1 : last],
            width=width[first - 1 : last],
            cell=cell[first - 1 : last],
            noise=noise,
            at_end=True,
            ends_open=last == len(codes) - 1,
        )
        return replace(stretch, at_end=_read_at_end(stretch, codes))

    @property
    def weights(self) -> Floats:
        """Widths, or 1 each where the axis stands still now and then (several samples a step)."""
        return self.width if np.all(self.width > 0) else np.ones(len(self.width))


def _grown(stretch: _Stretch, group: Group, tests: int, seed: int) -> PhaseGrowth | None:
    """What one phase kept; None where it has no interval in the stretch."""
    member_end, member_begin = group.member[stretch.ends], group.member[stretch.begins]
    total = float(stretch.growth.sum())
    if total <= 0 or not member_end.any() or not member_begin.any():
        return None
    inside = member_end if stretch.at_end else member_begin
    charged = _charged(stretch, inside)
    per_event = _event_growth(charged, inside, stretch.ends_open)
    share = min(1.0, float(per_event.sum()) / total)
    growing = per_event[per_event > GROWING_FRACTION * per_event.mean()]
    growth, *readings = _evenly(stretch, member_end, member_begin)
    cycles = Cycles.between_starts(readings[0] > 0.5)
    p_value = rotated(growth, readings, cycles, seed=seed)
    return PhaseGrowth(
        phase=group.name,
        events=len(per_event),
        growing_events=len(growing),
        growth_per_event=_mean_interval(growing),
        spread=_spread(growing),
        share=share,
        p_value=min(1.0, p_value * tests),
        times_elsewhere=_times_elsewhere(stretch, inside, per_event),
    )


def _evenly(stretch: _Stretch, *members: Mask) -> tuple[Floats, ...]:
    """Growth, and the parts spent in the phase, of intervals of equal width.

    Rotation moves growth along the axis, so a reading that happened to come soon after another must
    not make room for as much growth as a long interval.
    """
    width = stretch.weights
    columns = (stretch.growth, *(member * width for member in members))
    if np.ptp(width) > EVEN * width.mean():
        edges = np.r_[0.0, np.cumsum(width)]
        count = max(len(width), min(FINER * len(width), MOST_EVEN))
        even = np.linspace(0.0, edges[-1], count + 1)
        sums = (np.r_[0.0, np.cumsum(column)] for column in columns)
        columns = tuple(np.diff(np.interp(even, edges, total)) for total in sums)
        width = np.diff(even)
    return (columns[0], *(column / width for column in columns[1:]))


def _read_at_end(stretch: _Stretch, codes: Ints) -> bool:
    """Whether an interval belongs to the phase of the sample that ends it, not that begins it.

    Between a sample of one phase and a sample of the next, the tag alone does not tell. A reading
    in a log is taken at the end of what it reports, so that reading is preferred.
    """
    by_end = _misfit(stretch, codes[stretch.ends])
    return by_end <= 0 or _misfit(stretch, codes[stretch.begins]) >= BEGIN_READING_RATIO * by_end


def _misfit(stretch: _Stretch, codes: Ints) -> float:
    """Residual square of growth explained by the time that each cell spent in each phase."""
    width, cell = stretch.weights, stretch.cell - stretch.cell[0]
    exposure = [np.bincount(cell, width * (codes == code)) for code in np.unique(codes)]
    _, residual = nnls(np.column_stack(exposure), np.bincount(cell, stretch.growth))
    return float(residual) ** 2


def _exposure(stretch: _Stretch, inside: Mask) -> tuple[Floats, Floats]:
    """Per cell: width inside and outside the phase."""
    width, cell = stretch.weights, stretch.cell - stretch.cell[0]
    within = np.bincount(cell, width * inside).astype(np.float64)
    return within, np.bincount(cell, width * ~inside).astype(np.float64)


def _rates(stretch: _Stretch, inside: Mask) -> Floats:
    """Least-squares growth per width inside and outside, not negative."""
    growth = np.bincount(stretch.cell - stretch.cell[0], stretch.growth)
    rates: Floats = nnls(np.column_stack(_exposure(stretch, inside)), growth)[0]
    return rates


def _charged(stretch: _Stretch, inside: Mask) -> Floats:
    """Growth of each interval charged to the phase, shape (m,).

    A cell that lies inside or outside as a whole is plain. A mixed one (memory in passing hides
    when it grew) is divided as the rates of the two sides expect.
    """
    cell = stretch.cell - stretch.cell[0]
    within, without = _exposure(stretch, inside)
    growth = np.bincount(cell, stretch.growth)
    rates = _rates(stretch, inside)
    expected = rates[0] * within + rates[1] * without
    even = within / np.maximum(within + without, 1e-300)
    part = np.where(expected > 0, rates[0] * within / np.where(expected > 0, expected, 1.0), even)
    intervals = np.bincount(cell, inside)
    return np.where(inside, (growth * part / np.maximum(intervals, 1))[cell], 0.0)


def _event_growth(charged: Floats, inside: Mask, ends_open: bool) -> Floats:
    """Growth of each event, a maximal run of intervals inside, shape (events,).

    An event that the recording cuts off may still give memory back: it counts for no more than the
    largest one before it.
    """
    edge = np.flatnonzero(np.diff(np.r_[False, inside, False].astype(np.int8)))
    sums = np.r_[0.0, np.cumsum(charged)]
    growth = np.asarray(sums[edge[1::2]] - sums[edge[::2]], dtype=np.float64)
    if ends_open and inside[-1] and len(growth) > 1:
        growth[-1] = min(growth[-1], growth[:-1].max())
    return growth


def _mean_interval(growth: Floats) -> Interval:
    """Mean with its 95 % Student interval; of one event the value alone."""
    if len(growth) == 0:
        return Interval(value=0.0, low=0.0, high=0.0)
    mean = float(growth.mean())
    if len(growth) == 1:
        return Interval(value=mean, low=mean, high=mean)
    error = float(growth.std(ddof=1) / np.sqrt(len(growth)))
    half = float(student.ppf(0.975, len(growth) - 1)) * error
    return Interval(value=mean, low=mean - half, high=mean + half)


def _spread(growth: Floats) -> float | None:
    if len(growth) < 2:
        return None
    return float(growth.std(ddof=1) / growth.mean())


def _times_elsewhere(stretch: _Stretch, inside: Mask, per_event: Floats) -> float | None:
    """Growth per width inside over growth per width outside; None where all is inside.

    Outside, growth up to the noise of its ends may have gone unseen, so that much is allowed for.
    """
    part = float(stretch.weights[inside].sum() / stretch.weights.sum())
    if part >= 1.0:
        return None
    grown = float(per_event.sum())
    unseen = stretch.noise * math.sqrt(2 * len(per_event))
    elsewhere = max(float(stretch.growth.sum()) - grown, 0.0) + unseen
    return None if elsewhere <= 0 else grown / part / (elsewhere / (1.0 - part))


def _explained_by_child(row: PhaseGrowth, rows: Sequence[PhaseGrowth]) -> bool:
    return any(
        other.blamed and other.phase.startswith(row.phase + "/") and other.share >= row.share / 2
        for other in rows
    )

"""Which phase does the growth of a series fall into, how much per event, and is that chance?

Three steps. (1) The curve of *kept* memory: what is given back again is no growth. (2) Every
interval between two samples is charged to the phase it was spent in. (3) The share of a phase is
compared with what chance would give if growth had nothing to do with the tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import isotonic_regression, nnls
from scipy.stats import t as student

from memdiag.analysis.chance import Cycles, chance
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
MOST_PHASES = 12  # rows of a table that a person still reads


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The samples of a phase, nested ones included; `member` has shape (n,)."""

    name: str
    member: Mask
    leaf: bool


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
    kept = _kept(y, _noise(y) if noise is None else noise)
    first, last = max(int(tagged[0]), 1), int(tagged[-1])
    if last < first or kept.growth.sum() <= 0:
        return ()
    groups = list(_groups(phases))
    stretch = _Stretch.of(x, phases.codes, kept, first, last)
    found = [_grown(stretch, group, len(groups), seed) for group in groups]
    rows = [row for row in found if row is not None]
    named = [row for row in rows if not _explained_by_child(row, rows)]
    return tuple(sorted(named, key=lambda row: (-row.share, row.phase))[:MOST_PHASES])


def _check(x: Floats, y: Floats, phases: Phases) -> None:
    if not len(x) == len(y) == len(phases.codes):
        raise ValueError("x, y and phase codes must have the same length")


def _noise(y: Floats) -> float:
    """Standard deviation of one reading from the scaled MAD of the first differences."""
    steps = np.diff(y)
    return float(1.4826 * np.median(np.abs(steps - np.median(steps))) / np.sqrt(2.0))


def _kept(y: Floats, noise: float) -> _Kept:
    """The growth that was never given back.

    The lower envelope f_i = min(y_i, y_i+1, ...) is what is still held later. Samples far above it
    hold memory in passing (an evaluation, a batch): they say nothing of when the kept part came,
    so the growth between their neighbours is spread over them. The other samples are fitted by the
    least-squares nondecreasing curve (Barlow et al. 1972, pool adjacent violators), which averages
    the noise away without a bandwidth.
    """
    later = np.minimum.accumulate(y[::-1])[::-1]
    visible = y - later <= PASSING_NOISE * noise
    visible[0] = True  # the last one always is
    at = np.flatnonzero(visible)
    level = isotonic_regression(np.where(visible, y, later)[at]).x
    return _Kept(edges=at, growth=np.diff(level))


def _groups(phases: Phases) -> Iterator[_Group]:
    """Every tagged phase with what is nested in it, parents that have no tag of their own too."""
    used = [phases.names[code] for code in np.unique(phases.codes) if code >= 0]
    prefixes = {"/".join(name.split("/")[:depth]) for name in used for depth in range(1, 9)}
    for name in sorted({*used, *prefixes}):
        inside = [
            code
            for code, other in enumerate(phases.names)
            if other == name or other.startswith(name + "/")
        ]
        leaf = not any(other.startswith(name + "/") for other in used)
        yield _Group(name=name, member=np.isin(phases.codes, inside), leaf=leaf)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """The tagged stretch, interval by interval (between sample i-1 and i), shape (m,) each."""

    ends: slice  # samples that end the intervals
    begins: slice  # samples that begin them
    growth: Floats
    width: Floats
    cell: Ints  # number of the cell that an interval belongs to
    ends_open: bool  # the last sample of all is tagged: its event may not be over

    @classmethod
    def of(cls, x: Floats, codes: Ints, kept: _Kept, first: int, last: int) -> _Stretch:
        width = np.diff(x)
        growth = kept.per_interval(width)
        cell = np.repeat(np.arange(len(kept.growth)), np.diff(kept.edges))
        return cls(
            ends=slice(first, last + 1),
            begins=slice(first - 1, last),
            growth=growth[first - 1 : last],
            width=width[first - 1 : last],
            cell=cell[first - 1 : last],
            ends_open=last == len(codes) - 1,
        )


def _grown(stretch: _Stretch, group: _Group, tests: int, seed: int) -> PhaseGrowth | None:
    """What one phase kept; None where it has no interval in the stretch."""
    member_end, member_begin = group.member[stretch.ends], group.member[stretch.begins]
    total = float(stretch.growth.sum())
    if total <= 0 or not member_end.any():
        return None
    inside = _reading(stretch, member_end, member_begin)
    charged = _charged(stretch, inside)
    per_event = _event_growth(charged, inside, stretch.ends_open)
    share = min(1.0, float(per_event.sum()) / total)
    growing = per_event[per_event > GROWING_FRACTION * per_event.mean()]
    cycles = Cycles.between_starts(inside)
    p_value = chance(stretch.growth, (member_end, member_begin), cycles, seed=seed)
    return PhaseGrowth(
        phase=group.name,
        events=len(per_event),
        growing_events=len(growing),
        growth_per_event=_mean_interval(growing),
        spread=_spread(growing),
        share=share,
        p_value=min(1.0, p_value * tests),
        times_elsewhere=_times_elsewhere(share, inside, stretch.width),
    )


def _reading(stretch: _Stretch, member_end: Mask, member_begin: Mask) -> Mask:
    """Intervals spent in the phase: those that a tagged sample ends, or those that it begins.

    Between a sample of one phase and a sample of the next, the tag alone does not tell. A reading
    in a log is taken at the end of what it reports, so that reading is preferred.
    """
    if np.array_equal(member_end, member_begin):
        return member_end
    by_end, by_begin = (_misfit(stretch, m) for m in (member_end, member_begin))
    return member_begin if by_begin < BEGIN_READING_RATIO * by_end else member_end


def _exposure(stretch: _Stretch, inside: Mask) -> tuple[Floats, Floats]:
    """Per cell: width inside and outside the phase (counts of intervals where x stands still)."""
    width = stretch.width if np.all(stretch.width > 0) else np.ones(len(stretch.width))
    cell = stretch.cell - stretch.cell[0]
    within = np.bincount(cell, width * inside).astype(np.float64)
    return within, np.bincount(cell, width * ~inside).astype(np.float64)


def _rates(stretch: _Stretch, inside: Mask) -> tuple[Floats, float]:
    """Least-squares growth per width inside and outside, not negative, and the residual norm."""
    exposure = np.column_stack(_exposure(stretch, inside))
    growth = np.bincount(stretch.cell - stretch.cell[0], stretch.growth)
    rates, residual = nnls(exposure, growth)
    return rates, float(residual)


def _misfit(stretch: _Stretch, inside: Mask) -> float:
    return _rates(stretch, inside)[1] ** 2


def _charged(stretch: _Stretch, inside: Mask) -> Floats:
    """Growth of each interval charged to the phase, shape (m,).

    A cell that lies inside or outside as a whole is plain. A mixed one (memory in passing hides
    when it grew) is divided as the rates of the two sides expect.
    """
    cell = stretch.cell - stretch.cell[0]
    within, without = _exposure(stretch, inside)
    growth = np.bincount(cell, stretch.growth)
    rates, _ = _rates(stretch, inside)
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


def _times_elsewhere(share: float, inside: Mask, width: Floats) -> float | None:
    """Growth per width inside over growth per width outside; None where outside has no growth."""
    weight = width if width.sum() > 0 else np.ones(len(width))
    part = float(weight[inside].sum() / weight.sum())
    if share >= 1.0 or part >= 1.0:
        return None if part < 1.0 else 1.0
    return float("inf") if part <= 0 else share / part / ((1.0 - share) / (1.0 - part))


def _explained_by_child(row: PhaseGrowth, rows: Sequence[PhaseGrowth]) -> bool:
    return any(
        other.blamed and other.phase.startswith(row.phase + "/") and other.share >= row.share / 2
        for other in rows
    )

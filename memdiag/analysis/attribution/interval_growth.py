"""Kept growth, interval by interval, and the phase that each interval was spent in.

Memory that is released again is not growth: what counts is the curve of *kept* memory. Every
interval between two samples is charged to the phase it was spent in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import isotonic_regression, nnls

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats, Ints

    Mask = NDArray[np.bool_]

# An excursion above the later minimum is transient memory if it exceeds the noise this many
# times: heuristic, far outside what noise does, far below what an evaluation or a batch takes.
PASSING_NOISE = 8.0
# Tags may name the phase a sample ends (log lines) or the one it begins. The second reading is
# taken only where it explains the growth this much better (ratio of residual squares): heuristic.
BEGIN_READING_RATIO = 0.5
LEAST_MOVES = 0.8  # fewer moves than this part of the steps mean rounded readings: heuristic
EVEN = 0.01  # widths that differ by less than this fraction are equal
FINER, MOST_EVEN = 4, 20_000  # intervals of equal width per interval, and in all


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
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


def noise_of(y: Floats) -> float:
    """Standard deviation of one reading, from the falls (growth makes none) and the rounding.

    For independent noise the mean square of min(step, 0) is half the variance of a step, which is
    the variance of a reading. Readings that stand still and then move by one quantum are rounded
    to it: variance quantum^2 / 12.
    """
    if len(y) < 2:
        return 0.0
    steps = np.diff(y)
    moves = np.abs(steps[steps != 0])
    rounded = len(moves) > 0 and len(moves) < LEAST_MOVES * len(steps)
    quantum = float(moves.min()) if rounded else 0.0
    return math.hypot(float(np.sqrt(np.mean(np.minimum(steps, 0.0) ** 2))), quantum / 12**0.5)


def kept_growth(y: Floats, informative: Mask, noise: float) -> Kept:
    """The growth that was never released.

    The lower envelope f_i = min(y_i, y_i+1, ...) is what is still held later. Samples far above it
    hold transient memory (an evaluation, a batch) and do not show when the kept part came, nor do
    those that are not `informative`: the growth between their neighbors is spread over them. The
    others are fitted by the least-squares nondecreasing curve (Barlow et al. 1972, pool adjacent
    violators), which averages the noise away without a bandwidth.
    """
    later = np.minimum.accumulate(np.where(informative, y, np.inf)[::-1])[::-1]
    visible = informative & (y - later <= PASSING_NOISE * noise)
    visible[0] = visible[-1] = True
    later = np.minimum(later, y)
    at = np.flatnonzero(visible)
    level = isotonic_regression(np.where(visible, y, later)[at]).x
    return Kept(edges=at, growth=np.diff(level))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
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
    def of(cls, x: Floats, codes: Ints, kept: Kept, noise: float, first: int, last: int) -> Stretch:
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


def evenly(stretch: Stretch, *members: Mask) -> tuple[Floats, ...]:
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


def _read_at_end(stretch: Stretch, codes: Ints) -> bool:
    """Return True if an interval belongs to the phase of the sample that ends it, not begins it.

    Between a sample of one phase and a sample of the next, the tag alone does not decide. A reading
    in a log is taken at the end of what it reports, so that reading is preferred.
    """
    by_end = _misfit(stretch, codes[stretch.ends])
    return by_end <= 0 or _misfit(stretch, codes[stretch.begins]) >= BEGIN_READING_RATIO * by_end


def _misfit(stretch: Stretch, codes: Ints) -> float:
    """Residual square of growth explained by the time that each cell spent in each phase."""
    width, cell = stretch.weights, stretch.cell - stretch.cell[0]
    exposure = [np.bincount(cell, width * (codes == code)) for code in np.unique(codes)]
    _, residual = nnls(np.column_stack(exposure), np.bincount(cell, stretch.growth))
    return float(residual) ** 2


def charged(stretch: Stretch, inside: Mask) -> Floats:
    """Growth of each interval charged to the phase, shape (m,).

    A cell that lies inside or outside as a whole is plain. A mixed one (transient memory hides when
    it grew) is divided as the least-squares rates of the two sides expect.
    """
    width, cell = stretch.weights, stretch.cell - stretch.cell[0]
    within = np.bincount(cell, width * inside).astype(np.float64)
    without = np.bincount(cell, width * ~inside).astype(np.float64)
    growth = np.bincount(cell, stretch.growth)
    rates = nnls(np.column_stack((within, without)), growth)[0]
    expected = rates[0] * within + rates[1] * without
    even = within / np.maximum(within + without, 1e-300)
    part = np.where(expected > 0, rates[0] * within / np.where(expected > 0, expected, 1.0), even)
    intervals = np.bincount(cell, inside)
    return np.where(inside, (growth * part / np.maximum(intervals, 1))[cell], 0.0)


def event_growth(charges: Floats, inside: Mask, ends_open: bool) -> Floats:
    """Growth of each event, a maximal run of intervals inside, shape (events,).

    An event that the recording cuts off may still give memory back: it counts for no more than the
    largest one before it.
    """
    edge = np.flatnonzero(np.diff(np.r_[False, inside, False].astype(np.int8)))
    sums = np.r_[0.0, np.cumsum(charges)]
    growth = np.asarray(sums[edge[1::2]] - sums[edge[::2]], dtype=np.float64)
    if ends_open and inside[-1] and len(growth) > 1:
        growth[-1] = min(growth[-1], growth[:-1].max())
    return growth

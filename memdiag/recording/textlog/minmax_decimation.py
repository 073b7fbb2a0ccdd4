"""Min-max decimation for logs that do not fit in memory.

The analysis of a long series uses the floors of blocks and the peak. Both are kept: of each bucket
of lines the first, and those with the lowest and the highest value of each metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats, Ints

# Each decimation keeps at most one of this many lines.
_FACTOR = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Groups of lines.

    order: the lines sorted by group, in their original order within a group, shape (n,).
    numbers: the group of each in that order, ascending from 0, shape (n,).
    """

    order: Ints
    numbers: Ints


def decimated(metrics: Floats, axes: Floats, tags: Sequence[Ints], coarseness: int) -> Ints:
    """The lines to keep, ascending: at most about one of 4 ** coarseness of those with a metric.

    metrics, axes: their values, shape (metrics, n) and (axes, n), NaN where a line has none.
    tags: of lines, shape (n,); lines with different tags are in different buckets.
    """
    keep = np.zeros(metrics.shape[1], dtype=bool)
    rows = np.flatnonzero(np.isfinite(metrics).any(axis=0))
    width = (2 * len(metrics) + 1) * _FACTOR**coarseness
    buckets = _buckets([tag[rows] for tag in tags], len(rows), width)
    keep[rows[buckets.order[_firsts(buckets.numbers)]]] = True
    for readings in metrics:
        for values in (readings, -readings):
            keep[rows[_lowest(values[rows], buckets)]] = True
    below = keep.copy()
    below[-1:] = True  # what follows the last line
    for readings in axes:  # a position also applies to the lines below it
        named = np.where(np.isfinite(readings), np.arange(len(readings)), -1)
        before = np.maximum.accumulate(named)[below]
        keep[before[before >= 0]] = True
    return np.flatnonzero(keep)


def _buckets(tags: Sequence[Ints], rows: int, width: int) -> Buckets:
    """Buckets of `width` lines with the same tags."""
    order = np.lexsort(tags) if tags else np.arange(rows)
    begins = np.zeros(rows, dtype=bool)
    begins[:1] = True
    for tag in tags:
        begins[1:] |= np.diff(tag[order]) != 0
    starts = np.flatnonzero(begins)
    place = np.arange(rows) - np.repeat(starts, np.diff(np.append(starts, rows)))
    numbers = np.cumsum(begins | (place % width == 0)) - 1
    return Buckets(order=order, numbers=numbers)


def _lowest(values: Floats, buckets: Buckets) -> Ints:
    """The line with the lowest value of each bucket, the first of several."""
    ordered = values[buckets.order]
    lows = np.fmin.reduceat(ordered, np.flatnonzero(_firsts(buckets.numbers)))
    lowest = np.flatnonzero(ordered == lows[buckets.numbers])
    return buckets.order[lowest[_firsts(buckets.numbers[lowest])]]


def _firsts(numbers: Ints) -> NDArray[np.bool_]:
    return np.asarray(np.diff(numbers, prepend=-1) != 0)

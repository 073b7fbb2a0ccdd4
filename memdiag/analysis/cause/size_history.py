"""The sizes of a place over a recording: where it grows, whether it still does, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memdiag.values.holders import Size
from memdiag.values.measurements import Axis, AxisKind, Series

# The growth of the last part of a history, beside that of all of it, that counts as still growing.
# Heuristic: a cache that fills grows ever more slowly.
_LAST_PART, _STILL = 1 / 3, 0.25
# The growth up to the second reading, beside that at the later rate, that counts as growth from the
# first one on: positions are not exact. Heuristic.
_ALIKE = 0.5

Points = Sequence[tuple[float, float]]
"""Positions on an axis, and the sizes there."""


def on_axis(series: Series, axis: Axis) -> Series:
    """The series on the axis that it was judged on: time, where few of its readings have steps."""
    if axis.kind is AxisKind.SECONDS and series.at_s is not None:
        return replace(series, axis=axis, x=series.at_s)
    return series


def placed(sizes: Sequence[Size], series: Series, *, only_within: bool = False) -> Points:
    """The sizes on the axis of a series. Of those from before its first reading, the last one is
    where the series begins; those from after its last reading are at its end.

    only_within: without any of these.
    """
    if series.at_s is None:
        return []
    known = np.isfinite(series.x) & np.isfinite(series.at_s)
    at_s, x = series.at_s[known], series.x[known]
    if not len(x):
        return []
    order = np.argsort(at_s, kind="stable")
    at_s, x = at_s[order], x[order]
    before = [one for one in sizes if one.at_s < at_s[0]]
    sizes = [*before[-1:], *(one for one in sizes if one.at_s >= at_s[0])]
    if only_within:
        sizes = [one for one in sizes if at_s[0] <= one.at_s <= at_s[-1]]
    positions = np.interp([one.at_s for one in sizes], at_s, x).tolist()
    return [(at, one.size) for at, one in zip(positions, sizes, strict=True)]


def still_grows(points: Points) -> bool:
    """Return True if the last part of a history grows about as much as all of it: what comes after
    the last step counts for nothing.
    """
    (first, smallest), (last, largest) = points[0], points[-1]
    before = [one for one in points if one[0] <= last - _LAST_PART * (last - first)]
    if not before or last <= first:
        return False
    at, size = before[-1]
    return (largest - size) / (last - at) >= _STILL * (largest - smallest) / (last - first)


def since(points: Points, rate: float, *, is_count: bool) -> float | None:
    """The position at which it began to grow, by its first larger reading and its rate; None if it
    has none.

    is_count: it counts things. If their number grew already when it was first seen, it is the
    position at which there were none.
    """
    if not points or rate <= 0:
        return None
    first, smallest = points[0]
    larger = next((at for at, one in enumerate(points) if one[1] > smallest), None)
    if larger is None:
        return None
    at, size = points[larger]
    one_more = 1.0 if is_count else 0.0  # the next one may have been about to come
    is_alike = larger == 1 and size - smallest >= _ALIKE * rate * (at - first)
    if is_alike or at - (size - smallest + one_more) / rate <= first:
        return max(0.0, first - smallest / rate) if is_count else first
    return max(at - (size - smallest) / rate, points[larger - 1][0])

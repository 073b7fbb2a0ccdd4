"""The pictures of a comparison: one run of each side over the other, and their difference."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from memdiag.report.picture.model import Curve, Picture, Points, finite
from memdiag.report.text import wording
from memdiag.values.comparison import SeriesComparison


def of_comparison(found: SeriesComparison) -> Picture:
    """The run after the change, and the one before it behind."""
    return _picture(
        found,
        Curve(name="after", points=found.trace_candidate, readings=found.trace_candidate),
        Curve(name="before", points=found.trace_base, readings=found.trace_base),
    )


def difference(found: SeriesComparison) -> Picture:
    """After minus before, where both have readings."""
    base, candidate = finite(found.trace_base), finite(found.trace_candidate)
    points: Points = ()
    if base and candidate:
        low, high = max(base[0][0], candidate[0][0]), min(base[-1][0], candidate[-1][0])
        points = tuple((x, y - _at(base, x)) for x, y in candidate if low <= x <= high)
    curve = Curve(name="after minus before", points=points, readings=points)
    return replace(_picture(found, curve), title="After minus before")


def _at(points: Sequence[tuple[float, float]], x: float) -> float:
    """The value at `x`, on the line between its neighbors."""
    at = bisect_left(points, (x,))
    if at == 0 or points[at][0] == x:
        return points[at][1]
    (x0, y0), (x1, y1) = points[at - 1], points[at]
    return y0 + (y1 - y0) * (x - x0) / (x1 - x0)


def _picture(found: SeriesComparison, *curves: Curve) -> Picture:
    return Picture(
        unit=found.unit,
        axis=found.axis.kind,
        axis_word=wording.axis(found.axis),
        curves=curves,
    )

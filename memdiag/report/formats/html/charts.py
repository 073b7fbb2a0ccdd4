"""Pictures as the plain JSON values that the script of the page draws, and as small drawings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from memdiag.report.picture.model import Curve, Picture, finite, vertical_range
from memdiag.report.text import numbers
from memdiag.values.findings import Segment
from memdiag.values.readings import PhaseSpan

# Curves of one chart; a legend of more is of no use. The data of the others are not in the page.
_CURVES = 40


def chart(picture: Picture) -> dict[str, Any]:
    """A picture as JSON values."""
    names = list(dict.fromkeys(span.phase for span in picture.phases))
    return {
        "unit": picture.unit.value,
        "axis": picture.axis.value,
        "word": picture.axis_word,
        "least_span": picture.least_span,
        "curves": [_curve(curve, picture) for curve in picture.curves[:_CURVES]],
        "left_out": max(0, len(picture.curves) - _CURVES),
        "levels": [[level.value, level.label] for level in picture.levels],
        "phase_names": names,
        "phases": _phases(picture.phases, names),
    }


def _curve(curve: Curve, picture: Picture) -> dict[str, Any]:
    points = list(_extremes(finite(curve.readings or (*curve.points, *curve.tops))))
    plateau = curve.plateau
    return {
        "name": curve.name,
        "metric": curve.metric,
        "process": curve.process,
        "verdict": None if curve.verdict is None else curve.verdict.value,
        "x": [_number(x) for x, _ in points],
        "y": [_number(y) for _, y in points],
        "segments": [_segment(segment, picture) for segment in curve.segments],
        "jumps": [[j.x, j.before_value, j.after_value] for j in curve.jumps],
        "marks": [[mark.x, mark.label, mark.kind.value] for mark in curve.marks],
        "plateau": None
        if plateau is None
        else [plateau.since_x.value, plateau.lasted_x, plateau.low_value, plateau.high_value],
        "cone": [[p.x, p.value, p.low, p.high] for p in curve.cone],
    }


def _segment(segment: Segment, picture: Picture) -> list[Any]:
    """Both ends, and its slope in words."""
    slope = numbers.signed(segment.slope_per_x.value, picture.unit)
    ends = [segment.start_x, segment.start_value, segment.end_x, segment.end_value]
    return [*ends, f"{slope} per {picture.axis_word}"]


def _phases(spans: Sequence[PhaseSpan], names: Sequence[str]) -> list[list[float]]:
    """Starts, ends, and indexes of the names."""
    number = {name: at for at, name in enumerate(names)}
    return [
        [_number(span.start_x) for span in spans],
        [_number(span.end_x) for span in spans],
        [number[span.phase] for span in spans],
    ]


def _extremes(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Of several of the sorted points at one position the lowest and the highest."""
    for x, group in itertools.groupby(points, key=lambda point: point[0]):
        lowest, *others = (value for _, value in group)
        yield x, lowest
        if others and others[-1] != lowest:
            yield x, others[-1]


def _number(value: float) -> float | int:
    """Twelve digits are more than a chart can show, and shorter."""
    return int(value) if value == int(value) else float(f"{value:.12g}")


def sparkline(picture: Picture, width: int, height: int) -> str:
    """The commands of an SVG path for the first curve in a box; empty without two points."""
    drawn = finite(picture.curves[0].points)
    if len(drawn) < 2:
        return ""
    low, high = vertical_range([value for _, value in drawn], picture.least_span)
    first, last = drawn[0][0], drawn[-1][0]
    across, up = width / ((last - first) or 1.0), (height - 2) / (high - low)
    places = (f"{(x - first) * across:.1f} {height - 1 - (y - low) * up:.1f}" for x, y in drawn)
    return "M" + "L".join(places)

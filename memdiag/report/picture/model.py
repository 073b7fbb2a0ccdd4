"""A picture as data: the terminal, images, pages and notebooks draw it and decide nothing.

Positions (`x`) are on the axis of the picture, values in its unit. Every text is printable, but may
still hold what is markup elsewhere.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memdiag.values.findings import Plateau, Segment
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.readings import PhaseSpan
from memdiag.values.verdict import Verdict

Points = tuple[tuple[float, float], ...]


class MarkKind(enum.Enum):
    """What a vertical line marks."""

    ONSET = "onset"  # where the growth of a leak began
    PLATEAU = "plateau"  # where growth stopped
    CULPRIT = "culprit"  # where a place in the program began to grow
    THRESHOLD = "threshold"  # where a threshold of the user was crossed
    USER = "user"  # a moment that the user has marked


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A vertical line at `x`."""

    x: float
    label: str
    kind: MarkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A limit: a horizontal line at `value`."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A change between two segments, at `x`."""

    x: float
    before_value: float
    after_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConePoint:
    """The expected value at `x` with its 95% interval, if the trend continues."""

    x: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One series, and what was found in it.

    name: `RSS of rank0`. metric: canonical name of its metric (untrusted).
    process: label of its process, "" if the source knows only one.
    verdict: the verdict on it; None for a curve that was not judged.
    points: what was judged: one reading at each position, the lowest.
    tops: the highest readings at these positions, if they differ enough to be drawn.
    readings: all readings, reduced only as far as no peak is lost.
    segments: the parts with one slope each. jumps: the changes between them that are visible.
    marks: onset, plateau, culprits and thresholds. plateau: None if growth has not stopped.
    cone: the forecast from the last reading on; empty if nothing is forecast.
    """

    name: str
    metric: str = ""
    process: str = ""
    verdict: Verdict | None = None
    points: Points
    tops: Points = ()
    readings: Points = ()
    segments: tuple[Segment, ...] = ()
    jumps: tuple[Jump, ...] = ()
    marks: tuple[Mark, ...] = ()
    plateau: Plateau | None = None
    cone: tuple[ConePoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Curves over one axis and in one unit, the one that matters first.

    title: the finding in a line. subject: what it is about.
    axis_word: unit of the numbers under the axis ("step"); replaced by a time unit on an axis in
        seconds.
    least_span: the least that the vertical axis covers, so that noise does not look like growth.
    """

    title: str = ""
    subject: str = ""
    unit: Unit
    axis: AxisKind
    axis_word: str
    curves: tuple[Curve, ...]
    levels: tuple[Level, ...] = ()
    phases: tuple[PhaseSpan, ...] = ()
    least_span: float = 0.0


def finite(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that can be drawn, in order of x."""
    return sorted(p for p in points if math.isfinite(p[0]) and math.isfinite(p[1]))


def vertical_range(values: Sequence[float], least_span: float) -> tuple[float, float]:
    """The least range that contains the values and covers `least_span`; never empty, and not below
    zero if no value is."""
    low, high = min(values), max(values)
    lacking = max(0.0, least_span - (high - low), (high == low) * max(abs(high), 1.0) * 0.1)
    if low >= 0:
        lower = max(0.0, low - lacking / 2)
        return lower, high + lacking - (low - lower)
    return low - lacking / 2, high + lacking / 2

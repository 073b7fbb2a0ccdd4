"""What pictures show of a recording beside its findings: its readings, reduced, and its phases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memdiag.values.measurements import Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpan:
    """An uninterrupted run of a phase, from `start_x` to `end_x`. phase: its name (untrusted)."""

    start_x: float
    end_x: float
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The readings of a recording.

    series: (x, value) points for each series of the finding, on its axis, ascending in x. Of a long
        series the lowest and the highest reading of each of equal stretches are kept.
    samples: the number of readings that the points were chosen from, for each series.
    phases: the phases on the axis of the deciding series, in order; of very many, those of its
        points.
    limits: the limits of the recording.
    about: command, host, versions and cost, plain JSON values (untrusted).
    """

    series: tuple[tuple[tuple[float, float], ...], ...]
    samples: tuple[int, ...]
    phases: tuple[PhaseSpan, ...] = ()
    limits: tuple[Limit, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)

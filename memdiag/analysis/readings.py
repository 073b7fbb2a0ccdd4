"""The readings of a recording, reduced for pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.preprocessing.prepare import measured
from memdiag.analysis.stats.extremes import extremes
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import AxisKind, Recording, Series
from memdiag.values.readings import PhaseSpan, Readings

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats, Ints

# More points than a wide screen has columns, and few enough that ten series are a small file. The
# deciding series gets all that one may have, the others their parts of the rest.
_POINTS_OF_ONE, _POINTS_OF_ALL, _FEWEST = 6_000, 15_000, 300
_MOST_PHASES = 20_000


def with_readings(found: RecordingFinding, recording: Recording) -> RecordingFinding:
    """The finding on `recording` with what pictures need of its readings."""
    waiting: dict[tuple[str, str, str], list[Series]] = {}
    for series in reversed(recording.series):
        waiting.setdefault((series.metric, series.process, series.column), []).append(series)
    most = max(_FEWEST, min(_POINTS_OF_ONE, _POINTS_OF_ALL // max(len(found.series), 1)))
    points, samples = [], []
    phases: tuple[PhaseSpan, ...] = ()
    for at, finding in enumerate(found.series):
        series = waiting[finding.metric, finding.process, finding.column].pop()
        x, y, codes = _readings(series, finding)
        kept = extremes(y, _POINTS_OF_ONE if at == found.decided_by else most)
        points.append(tuple(zip(x[kept].tolist(), y[kept].tolist(), strict=True)))
        samples.append(len(x))
        if at == found.decided_by and codes is not None and series.phases is not None:
            phases = _phases(x, codes, series.phases.names, kept)
    return replace(
        found,
        readings=Readings(
            series=tuple(points),
            samples=tuple(samples),
            phases=phases,
            limits=recording.limits,
            about=recording.about,
        ),
    )


def _readings(series: Series, finding: Finding) -> tuple[Floats, Floats, Ints | None]:
    """Positions on the axis of the finding, readings, and phases, of the run that was judged."""
    y = np.asarray(series.y, dtype=np.float64)
    x = _positions(series, finding)
    keep = measured(y) & measured(x)
    if series.generation is not None and keep.any():
        generation = np.asarray(series.generation)
        keep &= generation == generation[keep].max()
    x, y = x[keep], y[keep]
    codes = None if series.phases is None else np.asarray(series.phases.codes)[keep]
    if not bool((x[1:] >= x[:-1]).all()):
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
        codes = None if codes is None else codes[order]
    return x, y, codes


def _positions(series: Series, finding: Finding) -> Floats:
    if finding.axis == series.axis:
        return np.asarray(series.x, dtype=np.float64)
    if finding.axis.kind is AxisKind.SECONDS and series.at_s is not None:
        return np.asarray(series.at_s, dtype=np.float64)
    return np.arange(len(series.y), dtype=np.float64)


def _phases(x: Floats, codes: Ints, names: tuple[str, ...], kept: Ints) -> tuple[PhaseSpan, ...]:
    """The runs of equal phases; if there are too many, those of the readings that are kept."""
    if not len(x):
        return ()
    first = _changes(codes)
    if len(first) > _MOST_PHASES:
        x, codes = x[kept], codes[kept]
        first = _changes(codes)
    ends = np.append(first[1:], len(x) - 1)
    return tuple(
        PhaseSpan(start_x=float(x[start]), end_x=float(x[end]), phase=names[codes[start]])
        for start, end in zip(first.tolist(), ends.tolist(), strict=True)
        if codes[start] >= 0
    )


def _changes(codes: Ints) -> Ints:
    """Where a run of equal codes begins."""
    return np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))

"""The starts of labelled series, judged: does the rest of the run bear a verdict out?

A verdict on the first readings is a prediction. That memory does not keep growing is right if the
rest of the run stays at its level; that it leaks is right if the whole series does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.diagnose import judge
from memdiag.values.measurements import AxisKind, Phases, Recording, Series
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

if TYPE_CHECKING:
    from _sets import Set

    from memdiag.values.findings import Finding

READINGS = (4, 5, 6, 8, 9, 12, 15, 19, 24, 32, 45, 60)
"""How many first readings are judged."""
BEYOND = 0.05
"""Part of the level that memory grows by later and that a stable verdict should have foreseen."""
MOST_OF_REST = 0.9
"""Quantile of the later readings that is compared: lone spikes do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One judged start of a series. right: whether the rest bears the verdict out, None for an
    inconclusive one, or where the truth is not sure."""

    name: str
    metric: str
    axis: AxisKind
    finding: Finding
    right: bool | None


def starts(sets: Iterable[Set], readings: Iterable[int] = READINGS) -> Iterator[Start]:
    """Every start of every labelled series that is shorter than the series."""
    readings = tuple(readings)
    for case in (case for one in sets for case in one.cases):
        for series in case.recording.series:
            truth = _truth(case.truth, series.metric)
            if truth is None:
                continue
            kept = _part(series, np.flatnonzero(np.isfinite(series.x) & np.isfinite(series.y)))
            for number in readings:
                if number < len(kept.y):
                    yield from _start(case.name, case.recording, kept, number, truth)


def _truth(truths: dict[str, str], metric: str) -> str | None:
    return next((t for m, t in truths.items() if m and metric.startswith(m)), None)


def _start(
    name: str, recording: Recording, series: Series, number: int, truth: str
) -> Iterator[Start]:
    first = _part(series, np.arange(number))
    found = judge(replace(recording, series=(first,))).series
    if found:
        yield Start(
            name=f"{name}:{number}",
            metric=series.metric,
            axis=series.axis.kind,
            finding=found[0],
            right=_right(found[0].verdict, series, number, truth),
        )


def _part(series: Series, rows: np.ndarray) -> Series:
    """The series with these rows alone."""
    changes = {}
    for one in fields(series):
        value = getattr(series, one.name)
        if isinstance(value, np.ndarray):
            changes[one.name] = value[rows]
        elif isinstance(value, Phases):
            changes[one.name] = replace(value, codes=np.asarray(value.codes)[rows])
    return replace(series, **changes)


def _right(verdict: Verdict, series: Series, number: int, truth: str) -> bool | None:
    if verdict is Verdict.INCONCLUSIVE or truth == "grey":
        return None
    if verdict is Verdict.LEAK:
        return truth == "leak"
    y = -series.y if series.falling else series.y
    level = float(np.abs(y[:number]).max())
    later = float(np.quantile(y[number:], MOST_OF_REST))
    return later <= float(y[:number].max()) + BEYOND * level


def group_of(found: Finding) -> str:
    """ "leak" or "stable"."""
    return "stable" if found.verdict in STABLE_OR_WARMUP else "leak"

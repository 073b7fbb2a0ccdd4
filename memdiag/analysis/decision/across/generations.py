"""Processes that one after the other have the same name: workers that each epoch starts anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.values.measurements import AxisKind, Series

if TYPE_CHECKING:
    from memdiag.analysis.policy import Common
    from memdiag.values.findings import Finding
    from memdiag.values.measurements import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The readings of one process. at_s: their times, ascending. y: the readings."""

    at_s: Floats
    y: Floats

    @property
    def lived_s(self) -> float:
        """Seconds from its first reading to its last."""
        return float(self.at_s[-1] - self.at_s[0])

    def highest(self, age_s: float) -> float:
        """Its highest reading up to an age."""
        return float(self.y[self.at_s - self.at_s[0] <= age_s].max())


def generations(recorded: Sequence[Series], process: str, metric: str) -> list[Generation]:
    """The processes of this name, in order; none where times are not known."""
    alike = [s for s in recorded if s.process == process and s.metric == metric]
    found = [one for series in alike for one in _of(series)]
    return sorted(found, key=lambda one: float(one.at_s[0]))


def _of(series: Series) -> Iterator[Generation]:
    if series.at_s is None:
        return
    read = np.isfinite(series.y) & np.isfinite(series.at_s)
    runs = np.zeros(len(series.y)) if series.generation is None else series.generation
    for run in np.unique(runs[read]):
        own = read & (runs == run)
        at_s, y = np.asarray(series.at_s)[own], np.asarray(series.y)[own]
        order = np.argsort(at_s, kind="stable")
        yield Generation(at_s=at_s[order], y=y[order])


def moment_s(recorded: Sequence[Series], finding: Finding, x: float) -> float | None:
    """When a series was at a position of its axis; None if unknown."""
    if finding.axis.kind is AxisKind.SECONDS:
        return x
    for series in recorded:
        own = series.process == finding.process and series.metric == finding.metric
        if own and series.axis == finding.axis and series.at_s is not None:
            later = np.asarray(series.at_s)[np.asarray(series.x) >= x]
            return float(later.min()) if len(later) else None
    return None


def rise_at_equal_age(found: Sequence[Generation], common: Common) -> float | None:
    """How much higher the last of them was than the first when it was as old as the shortest-lived;
    None of so few that the growth of one may be that of all."""
    known = [one for one in found if len(one.y) >= common.fewest]
    if len(known) < common.fewest:
        return None
    age_s = min(one.lived_s for one in known)
    return known[-1].highest(age_s) - known[0].highest(age_s)

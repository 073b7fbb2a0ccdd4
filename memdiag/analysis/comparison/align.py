"""What is measured of one run, and of both sides over the part of the axis that they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from memdiag.analysis.stats import pooled_estimate
from memdiag.analysis.stats.noise import MAD, robust_deviation
from memdiag.analysis.stats.pooled_estimate import Estimate
from memdiag.values.comparison import Difference, Measure
from memdiag.values.findings import Finding
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

# 1.96 + 0.84: a difference of this many standard errors shows in four of five tries at 95%.
SHOWN = 2.8
# The noise of one reading where a run is too short to show its own, part of the level. Heuristic.
_READING_NOISE = 0.02
# ... and the least, so that printed digits are not taken for exactness. Heuristic.
_LEAST_NOISE = 1e-4
# What an inconclusive run among stable ones may have grown by, part of its peak. Heuristic.
_NEXT_TO_NOTHING = 0.05
# A reading "at" a position is the middle one of those within this part of the common stretch.
_WINDOW = 0.05


def _may_be_stable(finding: Finding) -> bool:
    growth, length = finding.growth_per_x, finding.last_x - finding.first_x
    return growth is not None and growth.high * length <= _NEXT_TO_NOTHING * finding.peak_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The findings of one series in all runs of one side, at least one."""

    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """A leak in any run is a leak; STABLE where most runs are and the others, which are
        inconclusive, grew by next to nothing."""
        if any(f.verdict is Verdict.LEAK for f in self.findings):
            return Verdict.LEAK
        open_ = [f for f in self.findings if f.verdict not in STABLE_OR_WARMUP]
        stable = 2 * len(open_) < len(self.findings) and all(map(_may_be_stable, open_))
        return Verdict.STABLE if stable else Verdict.INCONCLUSIVE

    @property
    def axis_kinds(self) -> frozenset[AxisKind]:
        return frozenset(f.axis.kind for f in self.findings)

    @property
    def first_x(self) -> float:
        return max(_shifted(f, f.first_x) for f in self.findings)

    @property
    def last_x(self) -> float:
        return min(_shifted(f, f.last_x) for f in self.findings)

    @property
    def onset_x(self) -> float:
        """Where the leak began, in the run in which it began last."""
        onsets = [_shifted(f, f.onset_x.value) for f in self.findings if f.onset_x is not None]
        return max(onsets, default=self.first_x)

    @property
    def level_since_x(self) -> float:
        """Where its plateau begins, in the run in which it began last: what a warm-up rises by
        before hides a leak on the other side, and is none."""
        since = [_shifted(f, f.plateau.since_x.value) for f in self.findings if f.plateau]
        return max(since, default=self.first_x)

    def pooled(self, measure: Callable[[Finding], Estimate | None]) -> Estimate | None:
        """The runs that have this measure as one; None where none has."""
        each = [measure(f) for f in self.findings]
        return pooled_estimate.pool([e for e in each if e is not None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both sides of one series and what was measured on them.

    late: both sides' rise since the leak's onset and the end of the other side's warm-up (from
    `late_from` on), None where the shorter side ends before that.
    """

    base: Side
    candidate: Side
    common: tuple[float, float]
    estimates: dict[Measure, tuple[Estimate, Estimate]] = field(default_factory=dict)
    late_from: float = 0.0
    late: tuple[Estimate, Estimate] | None = None

    def difference(self, measure: Measure) -> Difference:
        """The measure's difference as it is reported."""
        base, candidate = self.estimates[measure]
        change = pooled_estimate.difference(base, candidate)
        return Difference(
            measure=measure,
            base=base.interval(),
            candidate=candidate.interval(),
            change=change.interval(),
            ratio=pooled_estimate.ratio(base, candidate),
            smallest_effect=SHOWN * change.error,
        )


def aligned(finding: Finding) -> list[tuple[float, float]]:
    """The trace on the common axis."""
    return [(_shifted(finding, x), y) for x, y in finding.trace]


def measured(base: Side, candidate: Side) -> Pair:
    """Both sides with every measure that both have."""
    common = max(base.first_x, candidate.first_x), min(base.last_x, candidate.last_x)
    measures: dict[Measure, Callable[[Finding], Estimate | None]] = {
        Measure.GROWTH: _growth,
        Measure.RISE: lambda f: _rise(f, *common),
        Measure.LEVEL: _level,
        Measure.PEAK: lambda f: _peak(f, common[1]),
    }
    estimates = {}
    for measure, read in measures.items():
        both = base.pooled(read), candidate.pooled(read)
        if both[0] is not None and both[1] is not None:
            estimates[measure] = both[0], both[1]
    starts = [
        side.onset_x if side.verdict is Verdict.LEAK else side.level_since_x
        for side in (base, candidate)
    ]
    since = max([common[0], *starts])
    late = tuple(side.pooled(lambda f: _rise(f, since, common[1])) for side in (base, candidate))
    return Pair(
        base=base,
        candidate=candidate,
        common=common,
        estimates=estimates,
        late_from=since,
        late=(late[0], late[1]) if late[0] is not None and late[1] is not None else None,
    )


def _shifted(finding: Finding, x: float) -> float:
    """A clock or a sample number has no origin of its own; steps and epochs do."""
    floats = finding.axis.kind in {AxisKind.SECONDS, AxisKind.INDEX, AxisKind.TICK}
    return x - finding.first_x if floats else x


# ---- one run ---------------------------------------------------------------------------------


def _growth(finding: Finding) -> Estimate | None:
    """The last regime's rate; no surer than its readings' noise over its length allows."""
    if finding.growth_per_x is None:
        return None
    found = pooled_estimate.from_interval(finding.growth_per_x)
    if found is None:
        return None
    last = finding.segments[-1] if finding.segments else None
    start, samples = (last.start_x, last.samples) if last else (finding.first_x, finding.samples)
    length = finding.last_x - start
    if length <= 0:
        return None
    # The error of a least-squares slope over evenly spaced readings.
    least = noise(finding) * math.sqrt(12 / max(samples, 2)) / length
    return Estimate(value=found.value, error=max(found.error, least))


def _level(finding: Finding) -> Estimate | None:
    """The plateau's middle reading; a flat run without one is level with its latest reading."""
    if finding.verdict not in STABLE_OR_WARMUP:
        return None
    since = finding.first_x if finding.plateau is None else finding.plateau.since_x.value
    values = [y for x, y in finding.trace if x >= since] or [finding.latest_value]
    return Estimate(
        value=median(values), error=max(robust_deviation(np.array(values)), noise(finding)) / 2
    )


def _peak(finding: Finding, last: float) -> Estimate | None:
    values = [y for x, y in aligned(finding) if x <= last]
    return Estimate(value=max(values), error=noise(finding)) if values else None


def _rise(finding: Finding, first: float, last: float) -> Estimate | None:
    """Reading at `last` minus that at `first`, as far as the run covers both."""
    points = aligned(finding)
    if len(points) < 2 or not last > first:
        return None
    half = _WINDOW * (last - first)
    start, end = (_reading(points, at, half) for at in (first, last))
    return Estimate(
        value=end[0] - start[0], error=noise(finding) * math.sqrt(1 / start[1] + 1 / end[1])
    )


def _reading(points: Sequence[tuple[float, float]], at: float, half: float) -> tuple[float, int]:
    """The middle reading around a position, and how many readings it rests on."""
    near = [y for x, y in points if abs(x - at) <= half]
    if len(near) >= 3:
        return median(near), len(near)
    before = [p for p in points if p[0] <= at] or [points[0]]
    after = [p for p in points if p[0] >= at] or [points[-1]]
    (x0, y0), (x1, y1) = before[-1], after[0]
    return (y0 if x1 == x0 else y0 + (y1 - y0) * (at - x0) / (x1 - x0)), 1


def noise(finding: Finding) -> float:
    """Standard deviation of one reading: its distance from the line between its neighbors.

    For white noise that distance has 1 + w^2 + (1 - w)^2 times the variance, w being where
    between the neighbors the reading lies; the middle one of all leaves jumps out. Too few
    readings: a part of the level.
    """
    points = finding.trace
    bends = []
    for (x0, y0), (x, y), (x1, y1) in zip(points, points[1:], points[2:], strict=False):
        if x1 > x0:
            w = (x - x0) / (x1 - x0)
            bends.append(abs(y - y0 - w * (y1 - y0)) / math.sqrt(1 + w * w + (1 - w) ** 2))
    if len(bends) < 5:
        return _READING_NOISE * abs(finding.peak_value)
    return max(MAD * median(bends), _LEAST_NOISE * abs(finding.peak_value), 1e-9)

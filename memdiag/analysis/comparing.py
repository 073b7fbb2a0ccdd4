"""Before and after: did the change fix the growth, help, do nothing, or make it worse?

Both sides are measured over the part of the axis that they share, each run by the diagnosis it
already got, several runs of a side pooled. "No effect" is only said where a change by a third
would have shown; otherwise the answer is "can't tell".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from memdiag.analysis import pooling
from memdiag.analysis.pooling import Estimate
from memdiag.comparison import (
    BAD,
    Comparison,
    Difference,
    Effect,
    Measure,
    SeriesComparison,
    Why,
)
from memdiag.findings import Finding, RecordingFinding, Verdict
from memdiag.model import AxisKind, Role

# 1.96 + 0.84: a difference of this many standard errors shows in four of five tries at 95 %.
_SHOWN = 2.8
# A rate counts as changed when it changed by a tenth at the least, as equal when a change by a
# third is excluded (so never when it halved). Chosen.
_MATERIAL_RATE = 0.10
_EQUAL_RATE = (2 / 3, 3 / 2)
# A leak counts as gone when at most this part of its rate can still be there. Chosen.
_GONE = 0.25
# Levels of single runs differ by some percent from run to run (caches, allocator pools); with
# several runs a side that spread is measured instead. Chosen.
_MATERIAL_LEVEL = 0.10
_MATERIAL_LEVEL_POOLED = 0.02
# The noise of one reading where a run is too short to show its own, part of the level. Chosen.
_READING_NOISE = 0.02

_MEMORY = frozenset(Role) - {
    Role.VIRTUAL,
    Role.CACHE,
    Role.COUNTER,
    Role.PROCESSES,
    Role.OBJECTS,
    Role.HOST,
}
_CALM = frozenset({Verdict.STABLE, Verdict.WARMUP})
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """The findings of one series in all runs of one side."""

    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """A leak in any run is a leak; calm only where every run is."""
        found = {f.verdict for f in self.findings}
        if Verdict.LEAK in found:
            return Verdict.LEAK
        return Verdict.STABLE if found <= _CALM else Verdict.INCONCLUSIVE

    @property
    def last_x(self) -> float:
        return min(_end(f) for f in self.findings)

    @property
    def first_x(self) -> float:
        return max(_start(f) for f in self.findings)

    def pooled(self, measure: Callable[[Finding], Estimate | None]) -> Estimate | None:
        """All runs' estimates as one; None where a run has none."""
        each = [measure(f) for f in self.findings]
        known = [e for e in each if e is not None]
        return pooling.pool(known) if len(known) == len(each) else None


def compare(base: Sequence[RecordingFinding], candidate: Sequence[RecordingFinding]) -> Comparison:
    """What changed from the runs of `base` to those of `candidate` (one or more runs each).

    Series are matched by metric and process label (pids do not count). The comparison's effect
    is that of the series on which the runs' own verdicts rest; any other memory series that got
    worse outranks it.
    """
    sides = [_by_key(base), _by_key(candidate)]
    keys = [key for key in sides[0] if key in sides[1]]
    series = tuple(_compare_series(sides[0][key], sides[1][key]) for key in keys)
    focus = {_key(f.deciding) for f in (*base, *candidate) if f.deciding is not None}
    decided_by = _deciding(series, [key in focus for key in keys])
    return Comparison(
        base=tuple(f.source for f in base),
        candidate=tuple(f.source for f in candidate),
        effect=Effect.CANT_TELL if decided_by is None else series[decided_by].effect,
        series=series,
        decided_by=decided_by,
        notes=tuple(_unmatched(*sides)),
    )


def _key(finding: Finding) -> _Key:
    """What makes the same series in another run: pids differ, labels do not."""
    return finding.metric, re.sub(r"\s+\d+$", "", finding.process)


def _by_key(side: Iterable[RecordingFinding]) -> dict[_Key, _Side]:
    """The findings of each series; of several alike in one run, the one that holds the most."""
    found: dict[_Key, list[Finding]] = {}
    for run in side:
        own: dict[_Key, Finding] = {}
        for finding in run.series:
            key = _key(finding)
            if key not in own or finding.peak_value > own[key].peak_value:
                own[key] = finding
        for key, finding in own.items():
            found.setdefault(key, []).append(finding)
    return {key: _Side(findings=tuple(findings)) for key, findings in found.items()}


def _unmatched(base: dict[_Key, _Side], candidate: dict[_Key, _Side]) -> Iterable[str]:
    for one, other, name in ((base, candidate, "base"), (candidate, base, "candidate")):
        alone = sorted(f"{metric} {process}".strip() for metric, process in one.keys() - other)
        if alone:
            yield f"only the {name} has {', '.join(alone[:4])}" + (
                f" and {len(alone) - 4} more series" if len(alone) > 4 else ""
            )


_RANK = (
    Effect.NEW_LEAK,
    Effect.WORSE,
    Effect.CANT_TELL,
    Effect.NO_EFFECT,
    Effect.IMPROVED,
    Effect.FIXED,
)


def _deciding(series: Sequence[SeriesComparison], focus: Sequence[bool]) -> int | None:
    """The series that speaks for all: the worst in focus, or one outside that got worse."""

    def rank(at: int) -> tuple[int, int]:
        return _RANK.index(series[at].effect), at

    bad = [i for i, s in enumerate(series) if s.effect in BAD and s.role in _MEMORY]
    ours = [i for i, chosen in enumerate(focus) if chosen]
    pool = (
        ours or [i for i, s in enumerate(series) if s.role in _MEMORY] or list(range(len(series)))
    )
    # Where both runs rest on different series, the one that was a leak is the question asked.
    leaks = [i for i in pool if Verdict.LEAK in series[i].base_verdicts]
    return min([*bad, *(leaks or pool)], key=rank, default=None)


# ---- one series ------------------------------------------------------------------------------


def _start(finding: Finding) -> float:
    return 0.0 if _floats(finding) else finding.first_x


def _end(finding: Finding) -> float:
    return finding.last_x - finding.first_x if _floats(finding) else finding.last_x


def _floats(finding: Finding) -> bool:
    """A clock or a sample number has no origin of its own; steps and epochs do."""
    return finding.axis.kind in {AxisKind.SECONDS, AxisKind.INDEX}


def _aligned(finding: Finding) -> list[tuple[float, float]]:
    shift = finding.first_x if _floats(finding) else 0.0
    return [(x - shift, y) for x, y in finding.trace]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    effect: Effect
    why: Why
    by: Measure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Both sides of one series, and what was measured on them."""

    base: _Side
    candidate: _Side
    common: tuple[float, float]
    estimates: dict[Measure, tuple[Estimate, Estimate]] = field(default_factory=dict)

    def difference(self, measure: Measure) -> Difference:
        base, candidate = self.estimates[measure]
        change = pooling.difference(base, candidate)
        return Difference(
            measure=measure,
            base=base.interval(),
            candidate=candidate.interval(),
            change=change.interval(),
            ratio=pooling.ratio(base, candidate),
            smallest_effect=_SHOWN * change.error,
        )


def _compare_series(base: _Side, candidate: _Side) -> SeriesComparison:
    common = (
        max(base.first_x, candidate.first_x),
        min(base.last_x, candidate.last_x),
    )
    pair = _measured(_Pair(base=base, candidate=candidate, common=common))
    decision = _decide(pair)
    differences = tuple(pair.difference(m) for m in pair.estimates)
    measures = list(pair.estimates)
    one, other = base.findings[-1], candidate.findings[-1]
    return SeriesComparison(
        metric=one.metric,
        process=_key(one)[1],
        role=one.role,
        unit=one.unit,
        axis=one.axis,
        effect=decision.effect,
        why=decision.why,
        base_verdicts=tuple(f.verdict for f in base.findings),
        candidate_verdicts=tuple(f.verdict for f in candidate.findings),
        differences=differences,
        decided_by=None if decision.by is None else measures.index(decision.by),
        common_x=common,
        need_more_x=_need_more(pair) if decision.effect is Effect.CANT_TELL else None,
        trace_base=tuple(_aligned(one)),
        trace_candidate=tuple(_aligned(other)),
    )


def _measured(pair: _Pair) -> _Pair:
    """The pair with every measure that both sides have."""
    first, last = pair.common
    measures: dict[Measure, Callable[[Finding], Estimate | None]] = {
        Measure.GROWTH: _growth,
        Measure.RISE: lambda f: _rise(f, first, last),
        Measure.LEVEL: _level,
        Measure.PEAK: lambda f: _peak(f, last),
    }
    estimates = {}
    for measure, read in measures.items():
        both = pair.base.pooled(read), pair.candidate.pooled(read)
        if both[0] is not None and both[1] is not None:
            estimates[measure] = both[0], both[1]
    return replace(pair, estimates=estimates)


def _growth(finding: Finding) -> Estimate | None:
    return None if finding.growth_per_x is None else pooling.from_interval(finding.growth_per_x)


def _level(finding: Finding) -> Estimate | None:
    """Middle of the plateau; a flat run without one is level with its latest reading."""
    if finding.plateau is not None:
        low, high = finding.plateau.low_value, finding.plateau.high_value
        return Estimate(value=(low + high) / 2, error=max((high - low) / math.sqrt(12), 1e-9))
    if finding.verdict in _CALM:
        return Estimate(value=finding.latest_value, error=_noise(finding))
    return None


def _peak(finding: Finding, last: float) -> Estimate | None:
    values = [y for x, y in _aligned(finding) if x <= last]
    return Estimate(value=max(values), error=_noise(finding)) if values else None


def _rise(finding: Finding, first: float, last: float) -> Estimate | None:
    """Reading at the last common position less that at the first, between the readings linear."""
    points = _aligned(finding)
    if len(points) < 2 or not last > first:
        return None
    rise = _reading(points, last) - _reading(points, first)
    return Estimate(value=rise, error=math.sqrt(2) * _noise(finding))


def _reading(points: Sequence[tuple[float, float]], at: float) -> float:
    before = [p for p in points if p[0] <= at] or [points[0]]
    after = [p for p in points if p[0] >= at] or [points[-1]]
    (x0, y0), (x1, y1) = before[-1], after[0]
    return y0 if x1 == x0 else y0 + (y1 - y0) * (at - x0) / (x1 - x0)


def _noise(finding: Finding) -> float:
    """Standard deviation of one reading, from second differences of the trace.

    A second difference of white noise has six times its variance; a median over absolute values
    leaves jumps out. Too few readings: a part of the level that says so.
    """
    ys = [y for _, y in finding.trace]
    bends = sorted(abs(a - 2 * b + c) for a, b, c in zip(ys, ys[1:], ys[2:], strict=False))
    if len(bends) < 5:
        return _READING_NOISE * abs(finding.peak_value)
    return max(1.4826 * bends[len(bends) // 2] / math.sqrt(6), 1e-4 * abs(finding.peak_value), 1e-9)


# ---- the rules -------------------------------------------------------------------------------


def _decide(pair: _Pair) -> _Decision:
    base, candidate = pair.base.verdict, pair.candidate.verdict
    if base is Verdict.LEAK and candidate in _CALM:
        return _leak_gone(pair)
    if base in _CALM and candidate is Verdict.LEAK:
        return _leak_appeared(pair)
    if base is Verdict.LEAK and candidate is Verdict.LEAK:
        return _rates(pair)
    if base in _CALM and candidate in _CALM:
        return _levels(pair)
    return _unsettled(pair)


def _leak_gone(pair: _Pair) -> _Decision:
    """The old rate must be excluded, not only be unseen: a short calm run proves nothing."""
    if Measure.GROWTH not in pair.estimates:
        return _Decision(effect=Effect.CANT_TELL, why=Why.TOO_NOISY)
    base, candidate = (e.interval() for e in pair.estimates[Measure.GROWTH])
    if candidate.high <= _GONE * base.value:
        return _Decision(effect=Effect.FIXED, why=Why.LEAK_GONE, by=Measure.GROWTH)
    return _Decision(effect=Effect.CANT_TELL, why=Why.TOO_NOISY, by=Measure.GROWTH)


def _leak_appeared(pair: _Pair) -> _Decision:
    if Measure.GROWTH not in pair.estimates:
        return _Decision(effect=Effect.NEW_LEAK, why=Why.LEAK_APPEARED)
    base, candidate = (e.interval() for e in pair.estimates[Measure.GROWTH])
    if base.high < candidate.value:
        return _Decision(effect=Effect.NEW_LEAK, why=Why.LEAK_APPEARED, by=Measure.GROWTH)
    return _Decision(effect=Effect.CANT_TELL, why=Why.TOO_NOISY, by=Measure.GROWTH)


def _rates(pair: _Pair) -> _Decision:
    if Measure.GROWTH not in pair.estimates:
        return _Decision(effect=Effect.CANT_TELL, why=Why.TOO_NOISY)
    found = pair.difference(Measure.GROWTH)
    if found.ratio is None:
        return _Decision(effect=Effect.CANT_TELL, why=Why.TOO_NOISY, by=Measure.GROWTH)
    if found.change.high < 0 and found.ratio.value <= 1 - _MATERIAL_RATE:
        return _Decision(effect=Effect.IMPROVED, why=Why.RATE_CHANGED, by=Measure.GROWTH)
    if found.change.low > 0 and found.ratio.value >= 1 + _MATERIAL_RATE:
        return _Decision(effect=Effect.WORSE, why=Why.RATE_CHANGED, by=Measure.GROWTH)
    if found.ratio.low >= _EQUAL_RATE[0] and found.ratio.high <= _EQUAL_RATE[1]:
        return _Decision(effect=Effect.NO_EFFECT, why=Why.RATE_EQUAL, by=Measure.GROWTH)
    return _Decision(effect=Effect.CANT_TELL, why=Why.TOO_NOISY, by=Measure.GROWTH)


def _levels(pair: _Pair) -> _Decision:
    measure = next((m for m in (Measure.LEVEL, Measure.PEAK) if m in pair.estimates), None)
    if measure is None:
        return _Decision(effect=Effect.CANT_TELL, why=Why.TOO_NOISY)
    found = pair.difference(measure)
    several = min(len(pair.base.findings), len(pair.candidate.findings)) > 1
    share = _MATERIAL_LEVEL_POOLED if several else _MATERIAL_LEVEL
    material = share * max(abs(found.base.value), abs(found.candidate.value))
    if found.change.high < 0 and found.change.value <= -material:
        return _Decision(effect=Effect.IMPROVED, why=Why.LEVEL_CHANGED, by=measure)
    if found.change.low > 0 and found.change.value >= material:
        return _Decision(effect=Effect.WORSE, why=Why.LEVEL_CHANGED, by=measure)
    if found.smallest_effect <= max(2 * material, found.smallest_effect if several else 0.0):
        return _Decision(effect=Effect.NO_EFFECT, why=Why.LEVEL_EQUAL, by=measure)
    return _Decision(effect=Effect.CANT_TELL, why=Why.TOO_NOISY, by=measure)


def _unsettled(pair: _Pair) -> _Decision:
    """At least one side is open. What it rose over the same steps may still speak."""
    base_open = pair.base.verdict is Verdict.INCONCLUSIVE
    why = Why.BASE_UNSETTLED if base_open else Why.CANDIDATE_UNSETTLED
    open_ = _Decision(effect=Effect.CANT_TELL, why=why)
    if Measure.RISE not in pair.estimates:
        return open_
    found = pair.difference(Measure.RISE)
    open_ = replace(open_, by=Measure.RISE)
    if found.ratio is None:
        return open_
    if pair.base.verdict is Verdict.LEAK and found.ratio.high < _EQUAL_RATE[0]:
        return _Decision(effect=Effect.IMPROVED, why=Why.SLOWER_SO_FAR, by=Measure.RISE)
    if pair.candidate.verdict is Verdict.LEAK and found.ratio.low > _EQUAL_RATE[1]:
        return _Decision(effect=Effect.WORSE, why=Why.FASTER_SO_FAR, by=Measure.RISE)
    return open_


def _need_more(pair: _Pair) -> float | None:
    """Axis units that the longest-open run still needs, as its own diagnosis says."""
    wanted = [
        f.need_more.more_x
        for f in (*pair.base.findings, *pair.candidate.findings)
        if f.need_more is not None and f.need_more.more_x is not None
    ]
    return max(wanted, default=None)

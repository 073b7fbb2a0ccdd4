"""Before and after: whether a change fixed the growth, helped, did nothing, or made it worse.

Both sides are measured over the part of the axis that they share, each run by the diagnosis it
already got, several runs of a side pooled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memdiag.analysis.comparison import effects
from memdiag.analysis.comparison.align import Side, aligned, measured
from memdiag.values.comparison import BAD, Comparison, Effect, SeriesComparison
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import Role
from memdiag.values.verdict import Verdict

_MEMORY = frozenset(Role) - {
    Role.VIRTUAL,
    Role.CACHE,
    Role.COUNTER,
    Role.PROCESSES,
    Role.OBJECTS,
    Role.HOST,
    Role.HOLES,
    Role.EVENTS,
    Role.PEAK,
    Role.TENSORS,
}
_Key = tuple[str, str]
# Labels end in a pid, except those that number what they name.
_PID = re.compile(r"(?<!rank)(?<!worker)\s+\d+(\s\(\d+\))?$")
_NAMED = 4


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
        effect=Effect.INCONCLUSIVE if decided_by is None else series[decided_by].effect,
        series=series,
        decided_by=decided_by,
        notes=tuple(_unmatched(*sides)),
    )


def _key(finding: Finding) -> _Key:
    """What makes the same series in another run: pids differ, labels do not."""
    return finding.metric, _PID.sub("", finding.process)


def _by_key(side: Iterable[RecordingFinding]) -> dict[_Key, Side]:
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
    return {key: Side(findings=tuple(findings)) for key, findings in found.items()}


def _unmatched(base: dict[_Key, Side], candidate: dict[_Key, Side]) -> Iterable[str]:
    for one, other, name in ((base, candidate, "base"), (candidate, base, "candidate")):
        alone = sorted(f"{metric} {process}".strip() for metric, process in one.keys() - other)
        more = f" and {len(alone) - _NAMED} more series" if len(alone) > _NAMED else ""
        if alone:
            yield f"only the {name} has {', '.join(alone[:_NAMED])}{more}"


_RANK = (
    Effect.NEW_LEAK,
    Effect.WORSE,
    Effect.INCONCLUSIVE,
    Effect.NO_EFFECT,
    Effect.IMPROVED,
    Effect.FIXED,
)


def _deciding(series: Sequence[SeriesComparison], focus: Sequence[bool]) -> int | None:
    """The series that decides for all: the worst in focus, or one outside that got worse."""

    def rank(at: int) -> tuple[int, int]:
        return _RANK.index(series[at].effect), at

    memory = [at for at, one in enumerate(series) if one.role in _MEMORY]
    ours = [at for at, chosen in enumerate(focus) if chosen] or memory or list(range(len(series)))
    # Where both runs rest on different series, the one that was a leak is the question asked.
    leaks = [at for at in ours if Verdict.LEAK in series[at].base_verdicts]
    bad = [at for at in memory if series[at].effect in BAD]
    if any(series[at].effect is Effect.FIXED for at in ours):
        # A leak that is gone matters more than a level that is higher.
        bad = [at for at in bad if Verdict.LEAK in series[at].candidate_verdicts]
        ours = [at for at in ours if at in leaks]
    return min([*bad, *(leaks or ours)], key=rank, default=None)


def _compare_series(base: Side, candidate: Side) -> SeriesComparison:
    pair = measured(base, candidate)
    decision = effects.decide(pair)
    open_ = decision.effect is Effect.INCONCLUSIVE
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
        differences=tuple(pair.difference(m) for m in measures),
        decided_by=None if decision.by is None else measures.index(decision.by),
        common_x=pair.common,
        need_more_x=effects.need_more(pair, decision) if open_ else None,
        more_runs=open_ and effects.wants_runs(pair, decision),
        trace_base=tuple(aligned(one)),
        trace_candidate=tuple(aligned(other)),
    )

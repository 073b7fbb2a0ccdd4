"""Growth that may be garbage: objects in reference cycles that Python has dropped but not freed.

Python frees those when its collector runs. The old ones wait for a full collection, which comes
when a quarter more objects are old than after the last one (CPython, Modules/gcmodule.c): beside
torch, which has hundreds of thousands, a program may run for thousands of steps without one. Until
then, what a closed matplotlib figure or a finished trainer leaves behind grows as a leak does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memdiag.analysis.decision.across.series_set import ON_DEVICE, PYTHON_BLOCKS, Changes, SeriesSet
from memdiag.analysis.decision.case import rule
from memdiag.analysis.parameters import number
from memdiag.analysis.policy import Common
from memdiag.values.findings import Finding, NeedMore
from memdiag.values.measurements import Role, Unit
from memdiag.values.verdict import Argument, Reason, Verdict

FULL, FULL_FREED = "gc_full_collections", "gc_full_freed_objects"
YOUNG_FREED = "gc_young_freed_objects"
WHY = "Python has to run a few full garbage collections"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """When growth may be garbage."""

    most_bytes: float = number(
        65536.0, "bytes an object", "that garbage may hold on average: 424 where figures are closed"
    )


@rule(Parameters())
def uncollected_garbage(
    finding: Finding, series: SeriesSet, parameters: Parameters
) -> tuple[Argument, Changes] | None:
    """Growth that may be garbage: objects in cycles that Python has dropped but not yet freed.

    Leaves a leak of host memory inconclusive until Python has collected a few times.
    """
    if finding.role in {*ON_DEVICE, Role.PROCESSES, Role.COUNTER}:
        return None
    waiting = _waiting(series)
    if finding.process == "tree":
        parts = [f for f in series.findings if f.process in waiting and f.metric == finding.metric]
        least = (1 - series.policy.common.little) * series.rise(finding, finding)
        may_be = bool(waiting) and sum(series.rise(f, finding) for f in parts) >= least
    else:
        may_be = finding.process in waiting and _can_be(finding, series, parameters)
    if not may_be:
        return None
    length, seconds = finding.last_x - finding.first_x, None
    if finding.growth_per_x is not None and finding.growth_per_s and finding.growth_per_s.value > 0:
        seconds = length * finding.growth_per_x.value / finding.growth_per_s.value
    argument = Argument(
        text="the growth may be objects in reference cycles, which Python frees only in a full "
        "garbage collection",
        reason=Reason.NOT_COLLECTED,
        need_x=length,
    )
    return argument, {
        "onset_x": None,
        "confidence": series.policy.reporting.open_confidence,
        "need_more": NeedMore(more_x=length, more_s=seconds, why=WHY),
    }


def _waiting(series: SeriesSet) -> frozenset[str]:
    """Processes whose Python objects grow, and whose growth may be garbage that waits."""
    known = {(f.process, f.metric): f for f in series.findings}
    growing = [
        f for f in series.findings if f.metric == PYTHON_BLOCKS and f.verdict is Verdict.LEAK
    ]
    return frozenset(b.process for b in growing if _waits(b, known, series.policy.common))


def _can_be(finding: Finding, series: SeriesSet, parameters: Parameters) -> bool:
    """Return True if a growth of bytes may be what objects in cycles hold."""
    if finding.unit is not Unit.BYTES or finding.growth_per_x is None:
        return True
    own = (finding.process, PYTHON_BLOCKS)
    blocks = [f for f in series.findings if (f.process, f.metric) == own]
    objects = sum(f.growth_per_x.value for f in blocks if f.growth_per_x is not None)
    return bool(finding.growth_per_x.value <= parameters.most_bytes * objects)


def _waits(blocks: Finding, known: dict[tuple[str, str], Finding], common: Common) -> bool:
    values = [known.get((blocks.process, name)) for name in (FULL, FULL_FREED, YOUNG_FREED)]
    onset, growth = blocks.onset_x, blocks.growth_per_x
    if None in values or onset is None or growth is None:
        return False
    full, freed, young = (value.trace for value in values if value is not None)
    start, end = onset.value, blocks.last_x
    collections = _gained(full, start)
    if collections >= common.fewest or not end > start:
        return False
    if collections > 0:
        garbage = _freed_by_the_last(full, freed)
    else:
        lately = (start + end) / 2  # (what a program starts with is another thing)
        garbage = _gained(young, lately) / (end - lately)
    return garbage >= common.warm_share * growth.value


def _freed_by_the_last(
    full: Sequence[tuple[float, float]], freed: Sequence[tuple[float, float]]
) -> float:
    """Objects that the last full collection freed, per axis unit since the one before."""
    rises = [(x, y) for (_, before), (x, y) in pairwise(full) if y > before]
    last_x, before_x = rises[-1][0], rises[-2][0] if len(rises) > 1 else full[0][0]
    got = [y for x, y in freed if x >= last_x][:1]
    had = [y for x, y in freed if x < last_x][-1:]
    way = max(last_x - before_x, 1e-9)  # exact: no division by 0
    return (got[0] - had[0]) / way if got and had else 0.0


def _gained(counter: Sequence[tuple[float, float]], start: float) -> float:
    values = [y for x, y in counter if x >= start]
    return values[-1] - values[0] if values else 0.0

"""Growth that may be garbage: objects in cycles that Python has dropped and not yet freed.

Python frees those when its collector runs. The old ones wait for a full collection, which comes
when a quarter more objects are old than after the last one (CPython, Modules/gcmodule.c): beside
torch, which has hundreds of thousands, a program may go on for thousands of steps without. Until
then what a closed figure or a finished trainer leaves behind grows as a leak does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from memdiag.analysis.decision.across.allocator_metrics import ON_DEVICE, rise
from memdiag.analysis.decision.across.meters import PYTHON_BLOCKS, Cross, Meters
from memdiag.analysis.decision.case import Says
from memdiag.analysis.parameters import number
from memdiag.analysis.policy import Common
from memdiag.values.findings import Finding, NeedMore
from memdiag.values.measurements import Role, Unit
from memdiag.values.verdict import Reason, Verdict

FULL, FULL_FREED = "gc_full_collections", "gc_full_freed_objects"
YOUNG_FREED = "gc_young_freed_objects"
WHY = "Python has to collect its garbage a few times"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """When growth may be garbage."""

    most_bytes: float = number(
        65536.0, "bytes an object", "that garbage may hold on average: 424 where figures are closed"
    )


def ask(finding: Finding, meters: Meters, parameters: Parameters) -> Says | None:
    """Leave a leak of host memory open."""
    if finding.role in {*ON_DEVICE, Role.PROCESSES, Role.COUNTER}:
        return None
    waiting = _waiting(meters)
    if finding.process == "tree":
        parts = [f for f in meters.findings if f.process in waiting and f.metric == finding.metric]
        policy = meters.policy
        least = (1 - meters.policy.common.little) * rise(finding, finding, policy)
        may_be = sum(rise(f, finding, policy) for f in parts) >= least
        may_be = may_be and bool(waiting)
    else:
        may_be = finding.process in waiting and _can_be(finding, meters, parameters)
    if not may_be:
        return None
    return Says(
        text="the growth may be objects in reference cycles, which Python frees only in a full "
        "garbage collection",
        reason=Reason.NOT_COLLECTED,
        need_x=finding.last_x - finding.first_x,
    )


def change(finding: Finding, meters: Meters, parameters: Parameters) -> Finding:
    """The finding, left open until Python has collected a few times."""
    length, seconds = finding.last_x - finding.first_x, None
    if finding.growth_per_x is not None and finding.growth_per_s and finding.growth_per_s.value > 0:
        seconds = length * finding.growth_per_x.value / finding.growth_per_s.value
    return replace(
        finding,
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.NOT_COLLECTED,
        onset_x=None,
        confidence=meters.policy.reporting.open_confidence,
        need_more=NeedMore(more_x=length, more_s=seconds, why=WHY),
    )


def _waiting(meters: Meters) -> frozenset[str]:
    """Processes whose Python objects grow, and whose growth may be garbage that waits."""
    known = {(f.process, f.metric): f for f in meters.findings}
    growing = [
        f for f in meters.findings if f.metric == PYTHON_BLOCKS and f.verdict is Verdict.LEAK
    ]
    return frozenset(b.process for b in growing if _waits(b, known, meters.policy.common))


def _can_be(finding: Finding, meters: Meters, parameters: Parameters) -> bool:
    """Whether a growth of bytes may be what objects in cycles hold."""
    if finding.unit is not Unit.BYTES or finding.growth_per_x is None:
        return True
    own = (finding.process, PYTHON_BLOCKS)
    blocks = [f for f in meters.findings if (f.process, f.metric) == own]
    objects = sum(f.growth_per_x.value for f in blocks if f.growth_per_x is not None)
    return finding.growth_per_x.value <= parameters.most_bytes * objects


def _waits(blocks: Finding, known: dict[tuple[str, str], Finding], common: Common) -> bool:
    figures = [known.get((blocks.process, name)) for name in (FULL, FULL_FREED, YOUNG_FREED)]
    onset, growth = blocks.onset_x, blocks.growth_per_x
    if None in figures or onset is None or growth is None:
        return False
    full, freed, young = (figure.trace for figure in figures if figure is not None)
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


CHECK = Cross(name="uncollected_garbage", ask=ask, parameters=Parameters(), change=change)

"""Growth that may be garbage: objects in cycles that Python has dropped and not yet freed.

Python frees those when its collector runs. The old ones wait for a full collection, which comes
when a quarter more objects are old than after the last one (CPython, Modules/gcmodule.c): beside
torch, which has hundreds of thousands, a program may go on for thousands of steps without. Until
then what a closed figure or a finished trainer leaves behind grows as a leak does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from memdiag.analysis.device import ON_DEVICE, rise
from memdiag.findings import Finding, NeedMore
from memdiag.model import Role, Unit
from memdiag.verdicts import Reason, Verdict

FULL, FULL_FREED = "gc_full_collections", "gc_full_freed_objects"
YOUNG_FREED, PYTHON_BLOCKS = "gc_young_freed_objects", "python_blocks"

SHARE = 0.3
"""Garbage as fast as this part of what objects grow by may be all of it (chosen: where a figure is
drawn and closed every 30 steps collections of the young free 0.6 to 0.9 of it, where nothing is in
cycles a thousandth)."""
MOST_BYTES = 65536.0
"""Bytes for each object that garbage may hold on average; growth by more has another cause
(chosen: 424 where figures are closed)."""
MOST = 0.9
"""Part of a tree's growth that the waiting processes must have (chosen)."""
CONFIDENCE = 0.8
"""In "garbage may wait": most programs that drop cycles keep nothing (chosen)."""
WHY = "Python has to collect its garbage a few times"
COLLECTIONS = 3
"""Full collections that growth must have outlived to be none of garbage (chosen)."""


def waiting(findings: Sequence[Finding]) -> frozenset[str]:
    """Processes whose Python objects grow, and whose growth may be garbage that waits."""
    known = {(f.process, f.metric): f for f in findings}
    growing = [f for f in findings if f.metric == PYTHON_BLOCKS and f.verdict is Verdict.LEAK]
    return frozenset(blocks.process for blocks in growing if _waits(blocks, known))


def left_open(finding: Finding, waiting: frozenset[str], findings: Sequence[Finding]) -> Finding:
    """The finding; INCONCLUSIVE where it is a leak of host memory that may be garbage of a process
    which is `waiting`, or of a tree that has nearly all its growth from such."""
    doubtful = finding.verdict is Verdict.LEAK and finding.role not in ON_DEVICE and waiting
    if not doubtful or finding.role in {Role.PROCESSES, Role.COUNTER}:
        return finding
    if finding.process == "tree":
        parts = [f for f in findings if f.process in waiting and f.metric == finding.metric]
        may_be = sum(rise(f, finding) for f in parts) >= MOST * rise(finding, finding)
    else:
        may_be = finding.process in waiting and _can_be(finding, findings)
    if not may_be:
        return finding
    length, seconds = finding.last_x - finding.first_x, None
    if finding.growth_per_x is not None and finding.growth_per_s and finding.growth_per_s.value > 0:
        seconds = length * finding.growth_per_x.value / finding.growth_per_s.value
    return replace(
        finding,
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.NOT_COLLECTED,
        onset_x=None,
        confidence=CONFIDENCE,
        need_more=NeedMore(more_x=length, more_s=seconds, why=WHY),
    )


def _can_be(finding: Finding, findings: Sequence[Finding]) -> bool:
    """Whether a growth of bytes may be what objects in cycles hold."""
    if finding.unit is not Unit.BYTES or finding.growth_per_x is None:
        return True
    blocks = [f for f in findings if (f.process, f.metric) == (finding.process, PYTHON_BLOCKS)]
    objects = sum(f.growth_per_x.value for f in blocks if f.growth_per_x is not None)
    return finding.growth_per_x.value <= MOST_BYTES * objects


def _waits(blocks: Finding, known: dict[tuple[str, str], Finding]) -> bool:
    figures = [known.get((blocks.process, name)) for name in (FULL, FULL_FREED, YOUNG_FREED)]
    onset, growth = blocks.onset_x, blocks.growth_per_x
    if None in figures or onset is None or growth is None:
        return False
    full, freed, young = (figure.trace for figure in figures if figure is not None)
    start, end = onset.value, blocks.last_x
    collections = _gained(full, start)
    if collections >= COLLECTIONS or not end > start:
        return False
    if collections > 0:
        garbage = _freed_by_the_last(full, freed)
    else:
        lately = 0.5 * (start + end)  # (what a program starts with is another thing)
        garbage = _gained(young, lately) / (end - lately)
    return garbage >= SHARE * growth.value


def _freed_by_the_last(
    full: Sequence[tuple[float, float]], freed: Sequence[tuple[float, float]]
) -> float:
    """Objects that the last full collection freed, per axis unit since the one before."""
    rises = _rises(full)
    last_x, before_x = rises[-1][0], rises[-2][0] if len(rises) > 1 else full[0][0]
    got = [y for x, y in freed if x >= last_x][:1]
    had = [y for x, y in freed if x < last_x][-1:]
    return (got[0] - had[0]) / max(last_x - before_x, 1e-9) if got and had else 0.0


def _rises(counter: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(x, y) for (_, before), (x, y) in pairwise(counter) if y > before]


def _gained(counter: Sequence[tuple[float, float]], start: float) -> float:
    values = [y for x, y in counter if x >= start]
    return values[-1] - values[0] if values else 0.0

"""Growth that may be garbage: objects in cycles that Python has dropped and not yet freed.

Python frees those when its collector runs. The old ones wait for a full collection, which comes
when a quarter more objects are old than after the last one (CPython, Modules/gcmodule.c): beside
torch, which has hundreds of thousands, a program may go on for thousands of steps without. Until
then what a closed figure or a finished trainer leaves behind grows as a leak does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from memdiag.findings import Finding, Verdict

FULL, FULL_FREED = "gc_full_collections", "gc_full_freed_objects"
YOUNG_FREED, BLOCKS = "gc_young_freed_objects", "python_blocks"

SHARE = 0.3
"""Garbage as fast as this part of what objects grow by may be all of it (chosen: where a figure is
drawn and closed every 30 steps collections of the young free 0.6 to 0.9 of it, where nothing is in
cycles a thousandth)."""
COLLECTIONS = 3
"""Full collections that growth must have outlived to be none of garbage (chosen)."""


def waiting(findings: Sequence[Finding]) -> frozenset[str]:
    """Processes whose Python objects grow, and whose growth may be garbage that waits."""
    known = {(f.process, f.metric): f for f in findings}
    return frozenset(
        blocks.process
        for blocks in findings
        if blocks.metric == BLOCKS and blocks.verdict is Verdict.LEAK and _waits(blocks, known)
    )


def _waits(blocks: Finding, known: dict[tuple[str, str], Finding]) -> bool:
    figures = [known.get((blocks.process, name)) for name in (FULL, FULL_FREED, YOUNG_FREED)]
    onset, growth = blocks.onset_x, blocks.growth_per_x
    if None in figures or onset is None or growth is None:
        return False
    full, freed, young = (figure.trace for figure in figures if figure is not None)
    start, end = onset.value, blocks.last_x
    within = [x for x, _ in _rises(full) if x > start]
    if len(within) >= COLLECTIONS:
        return False
    garbage = _freed_by_the_last(full, freed) if within else _gained(young, start) / (end - start)
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

"""The growth of a whole job, and the processes that make it.

The series that decides is the one that names its place best: often the exact metric of one process.
The growth of the job is the sum over its processes, small Python objects included, of which malloc
knows nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from memdiag.analysis.cross_series.leak_kind import NODES, rate
from memdiag.analysis.cross_series.makers import is_leak, makers
from memdiag.analysis.decision.across.series_set import (
    LARGEST_SMALL_BYTES,
    MALLOC,
    MALLOC_FREE,
    PYTHON_BLOCKS,
    SMALLEST_BYTES,
    SeriesSet,
    speed,
)
from memdiag.analysis.policy import DEFAULT, Policy
from memdiag.probe.ring_format import BLOCK_BYTES
from memdiag.values.findings import Finding, GrowthPart, Interval, WholeGrowth
from memdiag.values.verdict import Verdict


def whole_growth(
    findings: Sequence[Finding], decided_by: int | None, policy: Policy = DEFAULT
) -> WholeGrowth | None:
    """The growth of a leak of host memory in all processes; None for others."""
    subject = None if decided_by is None else findings[decided_by]
    if subject is None or not is_leak(subject):
        return None
    series = SeriesSet(findings=findings, policy=policy)
    parts = [part for one in makers(series, subject) for part in _parts(one, subject, series)]
    summed = _sum([part.growth_per_x for part in parts])
    whole = summed if _make_it_all(parts, series) and summed.value > 0 else subject.growth_per_x
    if whole is None:
        return None
    pace = _pace(subject, series)
    shared = [replace(part, share=part.growth_per_x.value / whole.value) for part in parts]
    return WholeGrowth(
        growth_per_x=whole,
        growth_per_s=None if pace is None else whole.scaled(pace),
        parts=tuple(sorted(shared, key=lambda part: -part.share)),
    )


def _pace(subject: Finding, series: SeriesSet) -> float | None:
    """Units of the subject's axis per second, as long as its own process was read; that of the
    others where it has no growth to tell it by."""
    per_x, per_s = subject.growth_per_x, subject.growth_per_s
    if per_x is None or per_s is None or not per_x.value:
        return series.pace(subject.axis)
    return per_s.value / per_x.value


def _parts(leak: Finding, subject: Finding, series: SeriesSet) -> list[GrowthPart]:
    """The growth of a process on the axis of the deciding series; none where that is unknown.

    Of pages whose own growth is uncertain, that of malloc and of Python's blocks in them, if blocks
    can be as large as the pages say.
    """
    own = {f.metric: f for f in series.findings if f.process == leak.process}
    known = [own[metric] for metric in (MALLOC, PYTHON_BLOCKS) if metric in own]
    exact = {one.metric: one for one in known if one.verdict is Verdict.LEAK}
    blocks = exact.get(PYTHON_BLOCKS)
    size = None if blocks is None else _block_bytes(blocks, exact.get(MALLOC), series)
    by_blocks = size is not None and not _is_certain(leak, series)
    counted = exact if by_blocks or leak.metric == MALLOC else {leak.metric: leak}
    found = {metric: _growth(one, subject, series) for metric, one in counted.items()}
    if PYTHON_BLOCKS in found:
        nodes = rate(own[NODES], subject, series) if NODES in own else 0.0
        objects = _less(found[PYTHON_BLOCKS], nodes or 0.0)
        found[PYTHON_BLOCKS] = None if objects is None else objects.scaled(size or BLOCK_BYTES)
    return [
        GrowthPart(process=leak.process, metric=metric, growth_per_x=growth, share=0.0)
        for metric, growth in found.items()
        if growth is not None and growth.value > 0 and leak.process != "tree"
    ]


def _growth(finding: Finding, subject: Finding, series: SeriesSet) -> Interval | None:
    units = series.units(finding.axis, subject.axis)
    if finding.growth_per_x is None or units is None:
        return None
    return finding.growth_per_x.scaled(units)


def _less(blocks: Interval | None, nodes: float) -> Interval | None:
    """Growth of Python's blocks, but for those that the count of nodes leaves."""
    if blocks is None:
        return None
    ours = max(nodes, 0.0)
    return Interval(value=blocks.value - ours, low=blocks.low - ours, high=blocks.high - ours)


def _block_bytes(blocks: Finding, malloc: Finding | None, series: SeriesSet) -> float | None:
    """The size of the new blocks: by the pages beside what malloc leaks; None if these are not
    known, or grow as blocks cannot."""
    own = {f.metric: f for f in series.findings if f.process == blocks.process}
    known = [blocks, own.get("rss_bytes"), own.get(MALLOC_FREE)]
    new, pages, free = [None if f is None else _rate(f, blocks, series) for f in known]
    held = 0.0 if malloc is None else _rate(malloc, blocks, series)
    if held is None or pages is None or free is None or not new or new < 0:
        return None
    size = (pages - held - max(free, 0.0)) / new
    return size if SMALLEST_BYTES <= size <= LARGEST_SMALL_BYTES else None


def _rate(finding: Finding, leak: Finding, series: SeriesSet) -> float | None:
    """The growth of a leak where it is certain; else the rate since the leak began."""
    is_known = finding.verdict is Verdict.LEAK and _is_certain(finding, series)
    growth = _growth(finding, leak, series) if is_known else None
    return rate(finding, leak, series) if growth is None else growth.value


def _is_certain(finding: Finding, series: SeriesSet) -> bool:
    """Return True if its growth is known within a small part of it."""
    growth = finding.growth_per_x
    if growth is None:
        return False
    return growth.high - growth.low <= 2 * series.policy.common.short_share * growth.value


def _make_it_all(parts: Sequence[GrowthPart], series: SeriesSet) -> bool:
    """Return True if the processes of these parts have nearly all of the tree's growth, each by the
    total's own metric."""
    trees = [f for f in series.findings if f.process == "tree" and is_leak(f)]
    processes = {part.process for part in parts}
    if not trees or not parts or any(map(series.is_only, processes)):
        return bool(parts)
    tree = max(trees, key=lambda f: f.samples)
    alike = [f for f in series.findings if f.metric == tree.metric and f.process in processes]
    return sum(map(speed, alike)) >= series.policy.reporting.owns * speed(tree)


def _sum(growths: Sequence[Interval]) -> Interval:
    """Of independent estimates."""
    low = math.hypot(*(one.value - one.low for one in growths))
    high = math.hypot(*(one.high - one.value for one in growths))
    value = math.fsum(one.value for one in growths)
    return Interval(value=value, low=value - low, high=value + high)

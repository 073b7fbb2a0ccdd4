"""The kind of memory that leaks, by how fast each metric of the same memory grows.

The metrics overlap: malloc holds the storages of tensors, Python's own allocator the small objects,
autograd's nodes are malloc's with whatever they saved. So the kinds are checked in this order for
one that holds at least half of the growth: cycles that are never collected, graphs, tensors that
Python knows of, small Python objects; what is left is native memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median

from memdiag.analysis.cross_series.makers import is_leak, makers
from memdiag.analysis.decision.across.garbage import UNREACHABLE
from memdiag.analysis.decision.across.series_set import PYTHON_BLOCKS, SeriesSet, onset, speed
from memdiag.analysis.policy import DEFAULT
from memdiag.probe.ring_format import BLOCK_BYTES
from memdiag.values.findings import Finding, Leaking
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.verdict import Verdict

# Of the growth, what one kind has to hold to be named (heuristic: more than all others together).
MOST = 0.5
# What malloc gives for a tensor beside its storage: over 20,000 kept `torch.empty`, torch 2.13.
AROUND_TENSOR_BYTES = 357
# A graph that grows has at least this many new nodes per unit of the axis: one kept loss of the
# smallest model has five. Heuristic.
LEAST_NODES = 0.5
NODES = "graph_nodes"
"""Counting nodes leaves a block of Python's allocator with each, as long as its graph is kept
(torch 2.13): those blocks are the probe's."""
# Pairs of points that a rate is the median of.
_MOST_POINTS = 40


def leaking(findings: Sequence[Finding], decided_by: int | None) -> Leaking | None:
    """The kind of memory that most of a leak on the host consists of; None where the metrics do not
    show it, and for device memory, where the framework's own metrics say more (`evidence`).
    """
    subject = None if decided_by is None else findings[decided_by]
    if subject is None or subject.verdict is not Verdict.LEAK:
        return None
    if subject.metric == PYTHON_BLOCKS:
        return Leaking(kind=MemoryKind.PYTHON_OBJECTS, share=None)
    if not is_leak(subject):
        return None
    series = SeriesSet(findings=findings, policy=DEFAULT)
    grown = [(max(speed(leak), 0.0), _of_process(leak, series)) for leak in makers(series, subject)]
    known = [(growth, found) for growth, found in grown if found is not None]
    for kind in dict.fromkeys(found.kind for _, found in known):
        alike = [(growth, found.share) for growth, found in known if found.kind is kind]
        of_kind = sum(growth for growth, _ in alike)
        if of_kind < MOST * sum(growth for growth, _ in grown):
            continue
        shares = [growth * share for growth, share in alike if share is not None]
        every = len(shares) == len(alike) and of_kind > 0
        return Leaking(kind=kind, share=sum(shares) / of_kind if every else None)
    return None


def _of_process(leak: Finding, series: SeriesSet) -> Leaking | None:
    metrics = {f.metric: f for f in series.same(leak) if f.process != "tree"}
    rates = {metric: rate(finding, leak, series) for metric, finding in metrics.items()}
    count = metrics.get("tensors")
    accumulate = count is not None and count.verdict is Verdict.LEAK
    whole, garbage = rate(leak, leak, series), rates.get(UNREACHABLE[False])
    if whole is not None and garbage is not None and garbage >= MOST * whole > 0:
        return Leaking(kind=MemoryKind.CYCLES, share=min(1.0, garbage / whole))
    return _kind(rates, whole, accumulate=accumulate)


def _kind(
    rates: dict[str, float | None], whole: float | None, *, accumulate: bool
) -> Leaking | None:
    """accumulate: the number of tensors grows, whatever is known of their bytes."""
    blocks, malloc = rates.get("python_blocks"), rates.get("malloc_bytes")
    if blocks is None or whole is None or whole <= 0:
        return None
    tensors, nodes = rates.get("tensor_bytes"), rates.get(NODES)
    if tensors is None and (tensors := rates.get("jax_array_bytes")) is not None:
        nodes = nodes or 0.0  # torch is not imported
    if tensors is not None:
        around = max(rates.get("tensors") or 0.0, 0.0) * AROUND_TENSOR_BYTES
        # (Malloc has it: more of it than malloc has is of tensors that are freed now and then.)
        tensors += around if malloc is None else min(around, max(malloc, 0.0))
    objects = max(blocks - max(nodes or 0.0, 0.0), 0.0) * BLOCK_BYTES
    in_use = whole if malloc is None else max(malloc, 0.0) + objects
    of_tensors = tensors is not None and tensors >= MOST * whole  # perhaps in shared memory
    if malloc is not None and in_use < MOST * whole and not of_tensors:
        free = rates.get("malloc_free_bytes")
        unused = None if free is None else _unused(free, in_use, whole)
        if free is None or unused is not None:
            return unused
    if _is_graph(nodes, rates.get("tensors")):
        rest = 1.0 - objects / in_use if in_use > 0 else 1.0
        return Leaking(kind=MemoryKind.GRAPH, share=max(rest, 0.0))
    if tensors is not None and tensors >= MOST * in_use:
        # (Where nodes were not counted, graphs may have saved them: what holds them decides.)
        share = None if nodes is None else min(1.0, tensors / max(in_use, tensors))
        return Leaking(kind=MemoryKind.TENSORS, share=share)
    if objects >= MOST * in_use:
        share = min(1.0, objects / in_use, _beside_malloc(rates.get("rss_bytes"), malloc))
        return Leaking(kind=MemoryKind.PYTHON_OBJECTS, share=share)
    if tensors is None and accumulate:
        return Leaking(kind=MemoryKind.TENSORS, share=None)
    return _of_malloc(tensors, nodes, objects, in_use, is_known=malloc is not None)


def _of_malloc(
    tensors: float | None, nodes: float | None, objects: float, in_use: float, *, is_known: bool
) -> Leaking | None:
    """What is left for malloc, if it was read."""
    if tensors is None or nodes is None:
        return Leaking(kind=MemoryKind.NATIVE_OR_TENSORS, share=None) if is_known else None
    rest = 1.0 - (max(tensors, 0.0) + objects) / in_use
    kind = MemoryKind.GRAPH if nodes >= LEAST_NODES else MemoryKind.NATIVE
    return Leaking(kind=kind, share=min(1.0, max(rest, 0.0)))


def _beside_malloc(pages: float | None, malloc: float | None) -> float:
    """The most that Python's own allocator can have of the growth of pages, 1 if unknown."""
    if pages is None or malloc is None or pages <= max(malloc, 0.0):
        return 1.0
    return 1.0 - max(malloc, 0.0) / pages


def _is_graph(nodes: float | None, tensors: float | None) -> bool:
    """Return True if a graph grows with the tensors that are kept: each of them holds nodes of its
    own, and what those have saved, which counts as tensors or not, goes with them."""
    if nodes is None or nodes < LEAST_NODES:
        return False
    return tensors is not None and nodes > max(tensors, 0.0) > 0


def _unused(free: float, in_use: float, whole: float) -> Leaking | None:
    """Pages of which most are malloc's holes, or none of malloc's; None if neither is so."""
    if free >= MOST * whole:
        return Leaking(kind=MemoryKind.HOLES, share=min(1.0, free / whole))
    if whole - in_use - free >= MOST * whole:
        return Leaking(kind=MemoryKind.MAPPED, share=None)
    return None


def rate(finding: Finding, leak: Finding, series: SeriesSet) -> float | None:
    """Growth per unit of the leak's axis since the leak began, by the median over pairs of points
    (Theil 1950, Sen 1968); None of fewer than two, and where the axes have no common clock.
    """
    units = series.units(finding.axis, leak.axis)
    if units is None:
        return None
    since = onset(leak) if units == 1 else finding.last_x - units * (leak.last_x - onset(leak))
    points = [point for point in finding.trace if point[0] >= since]
    points = points[:: max(1, len(points) // _MOST_POINTS)]
    slopes = [
        units * (after - before) / (later - sooner)
        for (sooner, before), (later, after) in combinations(points, 2)
        if later > sooner
    ]
    return median(slopes) if slopes else None

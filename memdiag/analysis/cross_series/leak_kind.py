"""The kind of memory that leaks, by how fast each metric of the same memory grows.

The metrics overlap: malloc holds the storages of tensors, Python's own allocator the small objects,
autograd's nodes are malloc's with whatever they saved. So the kinds are checked in this order for
one that holds at least half of the growth: tensors that Python knows of, small Python objects,
graphs; what is left is native memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median

from memdiag.analysis.decision.across.series_set import ON_DEVICE, SeriesSet
from memdiag.analysis.policy import DEFAULT
from memdiag.values.findings import Finding, Leaking, MemoryKind
from memdiag.values.measurements import Unit
from memdiag.values.verdict import Verdict

# Of the growth, what one kind has to hold to be named (heuristic: more than all others together).
MOST = 0.5
# What a small object takes on average in Python's own allocator, which hands out 16 to 512
# bytes: 87 over the dictionaries, strings and numbers of `python_objects` in benchmarks/programs.
BLOCK_BYTES = 87
# What malloc gives for a tensor beside its storage: over 20,000 kept `torch.empty`, torch 2.13.
AROUND_TENSOR_BYTES = 357
# A graph that grows has at least this many new nodes per unit of the axis: one kept loss of the
# smallest model has five. Heuristic.
LEAST_NODES = 0.5
# Pairs of points that a rate is the median of.
_MOST_POINTS = 40


def leaking(findings: Sequence[Finding], decided_by: int | None) -> Leaking | None:
    """The kind of memory that a leak on the host consists of; None where the metrics do not show
    it, and for device memory, where the framework's own metrics say more (`evidence`).
    """
    subject = None if decided_by is None else findings[decided_by]
    if subject is None or subject.verdict is not Verdict.LEAK or subject.role in ON_DEVICE:
        return None
    if subject.unit is not Unit.BYTES:
        return None
    same = SeriesSet(findings=findings, policy=DEFAULT).same(subject)
    metrics = {f.metric: f for f in same if f.axis == subject.axis and f.process != "tree"}
    rates = {metric: _rate(finding, subject) for metric, finding in metrics.items()}
    count = metrics.get("tensors")
    accumulate = count is not None and count.verdict is Verdict.LEAK
    return _kind(rates, _rate(subject, subject), accumulate=accumulate)


def _kind(
    rates: dict[str, float | None], whole: float | None, *, accumulate: bool
) -> Leaking | None:
    """accumulate: the number of tensors grows, whatever is known of their bytes."""
    blocks, malloc = rates.get("python_blocks"), rates.get("malloc_bytes")
    if blocks is None or whole is None or whole <= 0:
        return None
    tensors, nodes = rates.get("tensor_bytes"), rates.get("graph_nodes")
    if tensors is None:
        tensors = rates.get("jax_array_bytes")
    if tensors is not None:
        tensors += max(rates.get("tensors") or 0.0, 0.0) * AROUND_TENSOR_BYTES
    objects = max(blocks, 0.0) * BLOCK_BYTES
    in_use = whole if malloc is None else max(malloc, 0.0) + objects
    of_tensors = tensors is not None and tensors >= MOST * whole  # perhaps in shared memory
    if malloc is not None and in_use < MOST * whole and not of_tensors:
        return _unused(rates.get("malloc_free_bytes"), whole)
    if _is_graph(nodes, rates.get("tensors")):
        rest = 1.0 - objects / in_use if in_use > 0 else 1.0
        return Leaking(kind=MemoryKind.GRAPH, share=max(rest, 0.0))
    if tensors is not None and tensors >= MOST * in_use:
        return Leaking(kind=MemoryKind.TENSORS, share=min(1.0, tensors / max(in_use, tensors)))
    if objects >= MOST * in_use:
        return Leaking(kind=MemoryKind.PYTHON_OBJECTS, share=min(1.0, objects / in_use))
    if tensors is None and accumulate:
        return Leaking(kind=MemoryKind.TENSORS, share=None)
    if tensors is None or nodes is None:
        return None if malloc is None else Leaking(kind=MemoryKind.NATIVE_OR_TENSORS, share=None)
    rest = 1.0 - (max(tensors, 0.0) + objects) / in_use
    kind = MemoryKind.GRAPH if nodes >= LEAST_NODES else MemoryKind.NATIVE
    return Leaking(kind=kind, share=min(1.0, max(rest, 0.0)))


def _is_graph(nodes: float | None, tensors: float | None) -> bool:
    """Return True if a graph grows with the tensors that are kept: each of them holds nodes of its
    own, and what those have saved, which counts as tensors or not, goes with them."""
    if nodes is None or nodes < LEAST_NODES:
        return False
    return tensors is not None and nodes > max(tensors, 0.0) > 0


def _unused(free: float | None, whole: float) -> Leaking | None:
    """Pages that grow by more than what is in use: malloc's holes, or none of malloc's."""
    if free is None:
        return None
    kind = MemoryKind.HOLES if free >= MOST * whole else MemoryKind.MAPPED
    return Leaking(kind=kind, share=min(1.0, free / whole) if free >= MOST * whole else None)


def _rate(finding: Finding, leak: Finding) -> float | None:
    """Growth per unit of the axis since the leak began, by the median over pairs of points
    (Theil 1950, Sen 1968); None of fewer than two.
    """
    since = finding.first_x if leak.onset_x is None else leak.onset_x.value
    points = [point for point in finding.trace if point[0] >= since]
    points = points[:: max(1, len(points) // _MOST_POINTS)]
    slopes = [
        (after - before) / (later - sooner)
        for (sooner, before), (later, after) in combinations(points, 2)
        if later > sooner
    ]
    return median(slopes) if slopes else None

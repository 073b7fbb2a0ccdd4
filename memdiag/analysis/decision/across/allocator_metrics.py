"""What the figures of a framework's allocator say to each other and to the driver's.

docs/vram.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

from memdiag.analysis.policy import DEFAULT, Policy
from memdiag.values.findings import Evidence, EvidenceKind, Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Verdict

ON_DEVICE = (Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED)
# Allocators that a recording names by the beginning of its columns' names.
_SOURCES = frozenset({"vram", "xpu", "mps", "jax", "tensorflow"})
_OF_ALLOCATORS = frozenset(
    {Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED, Role.HOLES, Role.EVENTS, Role.TENSORS}
)


def source(finding: Finding) -> str:
    """The allocator that a figure comes from, "" for the driver, the host and foreign columns."""
    name = finding.metric.partition("_")[0]
    return name if finding.role in _OF_ALLOCATORS and name in _SOURCES else ""


def one_source(first: Finding, second: Finding) -> bool:
    """Whether two figures may be of one allocator's memory: none are of two different ones."""
    return source(first) == source(second) or "" in {source(first), source(second)}


def is_allocations(finding: Finding) -> bool:
    """An allocator's count of blocks in use."""
    return finding.role is Role.TENSORS and finding.metric.endswith("_allocations")


def is_active(finding: Finding) -> bool:
    """Blocks in use, and those that are freed and wait for another stream."""
    return finding.role is Role.DEVICE_ALLOCATED and finding.metric.endswith("_active_bytes")


def says(subject: Finding, other: Finding, findings: Sequence[Finding]) -> Iterator[EvidenceKind]:
    """What another figure of the allocator says to the growth of `subject`, of the same memory."""
    if is_allocations(other):
        if other.verdict is Verdict.LEAK:
            yield EvidenceKind.ALLOCATIONS_GROW
        elif other.verdict in CALM and _holds_bytes_that_grow(subject, other, findings):
            yield EvidenceKind.ALLOCATIONS_FLAT
    elif other.role is Role.HOLES:
        if subject.role is not Role.DEVICE_ALLOCATED and _follows(other, subject):
            yield EvidenceKind.HOLES_GROW
    elif is_active(other) and other.verdict is Verdict.LEAK:
        live = [f for f in findings if _is_allocated(f) and is_pair(f, other)]
        if any(f.verdict in CALM for f in live):
            yield EvidenceKind.WAITING_GROWS


def events(findings: Sequence[Finding]) -> Iterator[Evidence]:
    """What has happened to an allocator at least once while it was watched."""
    for finding in findings:
        failed = finding.metric.endswith("_ooms")
        told = failed or finding.metric.endswith("_alloc_retries")
        if told and finding.latest_value > finding.start_value:
            kind = EvidenceKind.OOMS_RISE if failed else EvidenceKind.RETRIES_RISE
            name = f"{finding.process} {finding.metric}".strip()
            yield Evidence(kind=kind, subject=name, supports=None)


def is_pair(first: Finding, second: Finding) -> bool:
    """Two figures of one process's allocator."""
    return first.process == second.process and source(first) == source(second)


def rise(finding: Finding, leaking: Finding, policy: Policy) -> float:
    """How much a series rose since another one's leak began, ends averaged over a tenth of the way
    (of the readings, where those are dense at one end)."""
    little = policy.common.little
    start = finding.first_x if leaking.onset_x is None else leaking.onset_x.value
    points = [p for p in finding.trace if p[0] >= start]
    if len(points) < 2:
        return 0.0
    tenth, most = (points[-1][0] - points[0][0]) * little, max(int(len(points) * little), 1)
    early = [v for x, v in points[:most] if x <= points[0][0] + tenth]
    late = [v for x, v in points[-most:] if x >= points[-1][0] - tenth]
    return mean(late) - mean(early)


def _follows(other: Finding, subject: Finding) -> bool:
    grown = rise(subject, subject, DEFAULT)
    least = DEFAULT.common.most * grown
    return grown > 0 and other.axis == subject.axis and rise(other, subject, DEFAULT) >= least


def _is_allocated(finding: Finding) -> bool:
    return finding.role is Role.DEVICE_ALLOCATED and not is_active(finding)


def _holds_bytes_that_grow(subject: Finding, count: Finding, findings: Sequence[Finding]) -> bool:
    """A steady number of blocks is news only where their bytes grow, not where the cache does."""
    if subject.role is Role.DEVICE_ALLOCATED:
        return not is_active(subject)
    return any(
        _is_allocated(f) and f.verdict is Verdict.LEAK and is_pair(f, count) for f in findings
    )

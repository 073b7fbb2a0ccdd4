"""Statements that other series of a recording make about the deciding one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memdiag.analysis.cross_series.leak_kind import NODES
from memdiag.analysis.cross_series.makers import makers
from memdiag.analysis.decision.across.series_set import (
    ELSEWHERE,
    IN_PART,
    MALLOC,
    MALLOC_FREE,
    PYTHON_BLOCKS,
    SeriesSet,
    is_active,
    is_pair,
    name,
    speed,
    unshared,
)
from memdiag.analysis.policy import DEFAULT, PAGES, Policy
from memdiag.values.findings import Evidence, EvidenceKind, Finding
from memdiag.values.measurements import ON_DEVICE, Role
from memdiag.values.verdict import STABLE_OR_WARMUP, Reason, Verdict

_GROWS = {
    Role.PROCESSES: EvidenceKind.PROCESSES_GROW,
    Role.COUNTER: EvidenceKind.COUNTER_GROWS,
}
# What accumulates beside stable memory, each reported once.
_COUNTED = {
    Role.TENSORS: EvidenceKind.COUNT_GROWS,
    Role.OBJECTS: EvidenceKind.COUNT_GROWS,
    Role.PROCESSES: EvidenceKind.PROCESSES_GROW,
}


def evidence(
    findings: Sequence[Finding], decided_by: int | None, policy: Policy = DEFAULT
) -> tuple[Evidence, ...]:
    """Statements of the other series about the one that decides."""
    if decided_by is None:
        return ()
    series, subject = SeriesSet(findings=findings, policy=policy), findings[decided_by]
    out = []
    if subject.restarts:
        out.append(Evidence(kind=EvidenceKind.EARLIER_RUN, subject=name(subject)))
    if subject.verdict is Verdict.LEAK and _is_alone(subject, series):
        out.append(Evidence(kind=EvidenceKind.ONE_PROCESS, subject=name(subject)))
    if subject.verdict in STABLE_OR_WARMUP:
        out += _holes_beside(subject, series)
        out += _counts_beside(subject, findings)
    else:
        out += [
            _evidence(kind, subject, other, other.verdict)
            for other in _about(subject, series)
            for kind in _statements(subject, other, series)
        ]
    return (*_consistent(out), *_unshared(series), *_events(findings))


def _about(subject: Finding, series: SeriesSet) -> list[Finding]:
    """The series that say something about the growth of another: of a job, those of the processes
    that grow, if these are known. Counters are of no process.
    """
    found = series.same(subject)
    growing = {one.process for one in makers(series, subject)} - {"tree"}
    if subject.process != "tree" or not growing:
        return found
    return [f for f in found if f.role in _GROWS or f.process in {"tree", "", *growing}]


def _evidence(kind: EvidenceKind, subject: Finding, against: Finding, says: Verdict) -> Evidence:
    return Evidence(kind=kind, subject=name(subject), against=name(against), supports=says)


def _unshared(series: SeriesSet) -> Iterator[Evidence]:
    """Forked workers that make copies of the parent's pages."""
    for finding in series.findings:
        resident = unshared(finding, series)
        if resident is not None:
            yield _evidence(EvidenceKind.UNSHARED, finding, resident, Verdict.WARMUP)
            return


def _events(findings: Sequence[Finding]) -> Iterator[Evidence]:
    """What happened to an allocator at least once while it was recorded."""
    for finding in findings:
        failed = finding.metric.endswith("_ooms")
        counts = failed or finding.metric.endswith("_alloc_retries")
        if counts and finding.latest_value > finding.start_value:
            kind = EvidenceKind.OOMS_RISE if failed else EvidenceKind.RETRIES_RISE
            yield Evidence(kind=kind, subject=name(finding), supports=None)


def _holes_beside(subject: Finding, series: SeriesSet) -> Iterator[Evidence]:
    """Pages that grow by fragmentation alone, beside a stable metric."""
    for pages in series.findings:
        held = [f for f in series.same(pages) if f.metric == MALLOC]
        if pages.reason is not Reason.OVERRULED or pages.role not in PAGES or not held:
            continue
        in_use_rose = series.rise(held[0], pages) >= _most_of(pages, series)
        if _may_be_free(pages, series) and not in_use_rose:
            yield _evidence(EvidenceKind.IN_USE_FLAT, pages, held[0], subject.verdict)
            return


def _may_be_free(pages: Finding, series: SeriesSet) -> bool:
    """Return True unless it is known that malloc holds less free than most of what pages rose by:
    the rest is mapped, or shared with other processes before."""
    own = [f for f in series.same(pages) if f.metric == MALLOC_FREE and f.axis == pages.axis]
    return not own or any(series.rise(f, pages) >= _most_of(pages, series) for f in own)


def _most_of(pages: Finding, series: SeriesSet) -> float:
    return series.policy.common.most * series.rise(pages, pages)


def _counts_beside(subject: Finding, findings: Sequence[Finding]) -> Iterator[Evidence]:
    """Things that accumulate beside stable memory: each is small, or shared."""
    if subject.role in _COUNTED:
        return
    growing = [f for f in findings if f.role in _COUNTED and f.verdict is Verdict.LEAK]
    for role, kind in _COUNTED.items():
        for counted in [f for f in growing if f.role is role][:1]:
            yield _evidence(kind, subject, counted, counted.verdict)


def _consistent(found: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The statements without those that others contradict or repeat.

    Python keeps small objects in arenas of its own, which malloc does not know: where they grow, a
    stable malloc does not make the growth fragmentation. And what holds for the number of all
    tensors need not be repeated for those on one kind of device.
    """
    kinds = {evidence.kind for evidence in found}
    of_all = {evidence.kind for evidence in found if _metric(evidence.against) == "tensors"}
    hidden = {EvidenceKind.IN_USE_FLAT} if EvidenceKind.OBJECTS_GROW in kinds else set()
    return tuple(
        e
        for e in found
        if e.kind not in hidden
        and not (e.kind in of_all and _metric(e.against).startswith("tensors_"))
    )


def _is_alone(subject: Finding, series: SeriesSet) -> bool:
    """Return True if other processes have such a series too, and do not grow like it."""
    alike = [
        f for f in series.findings if f.metric == subject.metric and f.process not in {"", "tree"}
    ]
    growths = [max(0.0, speed(f)) for f in alike if f.verdict not in STABLE_OR_WARMUP]
    if len(alike) < 2 or subject not in alike:
        return False
    return speed(subject) >= series.policy.reporting.alone * sum(growths) > 0


def _statements(subject: Finding, other: Finding, series: SeriesSet) -> Iterator[EvidenceKind]:
    """Statements of a series about the growth of another; none about the other kind of memory."""
    allocations = other.role is Role.TENSORS and other.metric.endswith("_allocations")
    if subject.role in ON_DEVICE:
        yield from _of_allocator(subject, other, series, allocations=allocations)
    kind = None if allocations else _one_says(subject, other)
    if kind is EvidenceKind.IN_USE_FLAT and not _may_be_free(subject, series):
        return
    if kind is EvidenceKind.OBJECTS_GROW and _are_nodes(other, series):
        return
    if kind is not None:
        yield kind


def _are_nodes(blocks: Finding, series: SeriesSet) -> bool:
    """Return True if most blocks of Python that are new are those that counting nodes leaves."""
    nodes = [f for f in series.findings if f.process == blocks.process and f.metric == NODES]
    risen = sum(series.rise(f, blocks) for f in nodes if f.axis == blocks.axis)
    return risen >= series.policy.common.most * series.rise(blocks, blocks) > 0


def _of_allocator(
    subject: Finding, other: Finding, series: SeriesSet, *, allocations: bool
) -> Iterator[EvidenceKind]:
    """Statements of another metric of the allocator (docs/vram.md has the table).

    allocations: `other` is its count of blocks in use.
    """
    allocated = [
        f
        for f in series.findings
        if f.role is Role.DEVICE_ALLOCATED and not is_active(f) and is_pair(f, other)
    ]
    if allocations:
        # A steady number of blocks means something where their bytes grow, not where the cache
        # does.
        grow = any(f.verdict is Verdict.LEAK for f in allocated)
        if subject.role is Role.DEVICE_ALLOCATED:
            grow = not is_active(subject)
        if other.verdict is Verdict.LEAK:
            yield EvidenceKind.ALLOCATIONS_GROW
        elif other.verdict in STABLE_OR_WARMUP and grow:
            yield EvidenceKind.ALLOCATIONS_FLAT
    elif other.role is Role.HOLES:
        if subject.role is not Role.DEVICE_ALLOCATED and _follows(other, subject, series):
            yield EvidenceKind.HOLES_GROW
    elif (
        is_active(other)
        and other.verdict is Verdict.LEAK
        and any(f.verdict in STABLE_OR_WARMUP for f in allocated)
    ):
        yield EvidenceKind.WAITING_GROWS


def _follows(other: Finding, subject: Finding, series: SeriesSet) -> bool:
    grown = series.rise(subject, subject)
    least = series.policy.common.most * grown
    return grown > 0 and other.axis == subject.axis and series.rise(other, subject) >= least


def _one_says(subject: Finding, other: Finding) -> EvidenceKind | None:
    if other.role in _GROWS:
        return _GROWS[other.role] if other.verdict is Verdict.LEAK else None
    if other.metric == PYTHON_BLOCKS:
        grows = other.verdict is Verdict.LEAK and subject.role not in ON_DEVICE
        return EvidenceKind.OBJECTS_GROW if grows else None
    if other.metric in IN_PART:
        return None
    if other.role is Role.TENSORS:
        return _tensors_say(subject, other)
    return _stable_says(subject, other.role) if other.verdict in STABLE_OR_WARMUP else None


def _stable_says(subject: Finding, stable: Role) -> EvidenceKind | None:
    is_cache = subject.role is Role.DEVICE_RESERVED or subject.reason is Reason.OVERRULED
    if stable is Role.IN_USE and subject.role not in {Role.IN_USE, *ON_DEVICE}:
        return EvidenceKind.IN_USE_FLAT
    if stable is Role.DEVICE_ALLOCATED and subject.role in ON_DEVICE and is_cache:
        return EvidenceKind.ALLOCATED_FLAT
    if stable is Role.DEVICE_RESERVED and subject.role is Role.DEVICE:
        return EvidenceKind.RESERVED_FLAT
    return None


def _tensors_say(subject: Finding, other: Finding) -> EvidenceKind | None:
    """Tensors count where they are: those of a GPU say nothing about host memory. Those that come
    and go with collections of garbage do accumulate in between."""
    if other.metric in ELSEWHERE[subject.role in ON_DEVICE]:
        return None
    if other.verdict is Verdict.LEAK:
        return EvidenceKind.TENSORS_GROW
    is_flat = other.verdict in STABLE_OR_WARMUP and other.reason is not Reason.BOUNDED_CYCLES
    return EvidenceKind.TENSORS_FLAT if is_flat else None


def _metric(name: str) -> str:
    return name.rpartition(" ")[2]

"""What the other series of a recording say to the one that decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memdiag.analysis.decision.across import allocator_metrics
from memdiag.analysis.decision.across.allocator_metrics import ON_DEVICE, rise
from memdiag.analysis.decision.across.meters import (
    ELSEWHERE,
    IN_PART,
    MALLOC,
    PYTHON_BLOCKS,
    Meters,
    name,
    speed,
)
from memdiag.analysis.policy import DEFAULT, PAGES, Policy
from memdiag.values.findings import Evidence, EvidenceKind, Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Reason, Verdict

_GROWS = {
    Role.PROCESSES: EvidenceKind.PROCESSES_GROW,
    Role.COUNTER: EvidenceKind.COUNTER_GROWS,
}
# What accumulates beside calm memory, each told once.
_COUNTED = {
    Role.TENSORS: EvidenceKind.COUNT_GROWS,
    Role.OBJECTS: EvidenceKind.COUNT_GROWS,
    Role.PROCESSES: EvidenceKind.PROCESSES_GROW,
}


def evidence(
    findings: Sequence[Finding], decided_by: int | None, policy: Policy = DEFAULT
) -> tuple[Evidence, ...]:
    """What the other series say to the one that decides."""
    if decided_by is None:
        return ()
    meters, subject = Meters(findings=findings, policy=policy), findings[decided_by]
    out = []
    if subject.restarts:
        out.append(Evidence(kind=EvidenceKind.EARLIER_RUN, subject=name(subject)))
    if subject.verdict is Verdict.LEAK and _is_alone(subject, meters):
        out.append(Evidence(kind=EvidenceKind.ONE_PROCESS, subject=name(subject)))
    if subject.verdict in CALM:
        out += _holes_beside(subject, meters)
        out += _counts_beside(subject, findings)
    else:
        for other in findings:
            if meters.is_same(subject, other):
                out += [
                    Evidence(
                        kind=kind,
                        subject=name(subject),
                        against=name(other),
                        supports=other.verdict,
                    )
                    for kind in _says(subject, other, findings)
                ]
    return (*_consistent(out), *allocator_metrics.events(findings))


def _holes_beside(subject: Finding, meters: Meters) -> Iterator[Evidence]:
    """Pages that grow by holes alone, beside a meter that is calm."""
    for pages in meters.findings:
        held = [f for f in meters.findings if f.metric == MALLOC and meters.is_same(pages, f)]
        if pages.reason is not Reason.OVERRULED or pages.role not in PAGES or not held:
            continue
        if rise(held[0], pages, meters.policy) < meters.policy.common.most * rise(
            pages, pages, meters.policy
        ):
            yield Evidence(
                kind=EvidenceKind.IN_USE_FLAT,
                subject=name(pages),
                against=name(held[0]),
                supports=subject.verdict,
            )
            return


def _counts_beside(subject: Finding, findings: Sequence[Finding]) -> Iterator[Evidence]:
    """Things that accumulate beside memory that is calm: each is small, or shared."""
    if subject.role in _COUNTED:
        return
    growing = [f for f in findings if f.role in _COUNTED and f.verdict is Verdict.LEAK]
    for role, kind in _COUNTED.items():
        for counted in [f for f in growing if f.role is role][:1]:
            yield Evidence(
                kind=kind,
                subject=name(subject),
                against=name(counted),
                supports=counted.verdict,
            )


def _consistent(told: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Python keeps small objects in arenas of its own, of which malloc knows nothing: where they
    grow, a calm malloc does not make the growth one of holes. And what the number of all tensors
    says need not be said again of those on one kind of device.
    """
    kinds = {evidence.kind for evidence in told}
    all_say = {evidence.kind for evidence in told if _metric(evidence.against) == "tensors"}
    told = [
        e for e in told if e.kind not in all_say or not _metric(e.against).startswith("tensors_")
    ]
    hidden = {EvidenceKind.IN_USE_FLAT} if EvidenceKind.OBJECTS_GROW in kinds else set()
    return tuple(evidence for evidence in told if evidence.kind not in hidden)


def _is_alone(subject: Finding, meters: Meters) -> bool:
    """Other processes do the same work (they have such a series too), and do not grow like it."""
    alike = [
        f for f in meters.findings if f.metric == subject.metric and f.process not in {"", "tree"}
    ]
    growths = [max(0.0, speed(f)) for f in alike if f.verdict not in CALM]
    if len(alike) < 2 or subject not in alike:
        return False
    return speed(subject) >= meters.policy.reporting.alone * sum(growths) > 0


def _says(subject: Finding, other: Finding, findings: Sequence[Finding]) -> Iterator[EvidenceKind]:
    """What a series says to the growth of another; nothing about the other kind of memory."""
    if subject.role in ON_DEVICE:
        yield from allocator_metrics.says(subject, other, findings)
    kind = None if allocator_metrics.is_allocations(other) else _one_says(subject, other)
    if kind is not None:
        yield kind


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
    return _calm_says(subject, other.role) if other.verdict in CALM else None


def _calm_says(subject: Finding, calm: Role) -> EvidenceKind | None:
    is_cache = subject.role is Role.DEVICE_RESERVED or subject.reason is Reason.OVERRULED
    if calm is Role.IN_USE and subject.role not in ON_DEVICE:
        return EvidenceKind.IN_USE_FLAT
    if calm is Role.DEVICE_ALLOCATED and subject.role in ON_DEVICE and is_cache:
        return EvidenceKind.ALLOCATED_FLAT
    if calm is Role.DEVICE_RESERVED and subject.role is Role.DEVICE:
        return EvidenceKind.RESERVED_FLAT
    return None


def _tensors_say(subject: Finding, other: Finding) -> EvidenceKind | None:
    """Tensors count where they are: those of a GPU say nothing of host memory."""
    if other.metric in ELSEWHERE[subject.role in ON_DEVICE]:
        return None
    if other.verdict is Verdict.LEAK:
        return EvidenceKind.TENSORS_GROW
    return EvidenceKind.TENSORS_FLAT if other.verdict in CALM else None


def _metric(name: str) -> str:
    return name.rpartition(" ")[2]

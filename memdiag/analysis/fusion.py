"""Weigh the series of one recording: which of them decides, and what the others say to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdiag.findings import Evidence, EvidenceKind, Finding, Reason, Verdict
from memdiag.model import Role
from memdiag.policy import NO_METERS

CALM = (Verdict.STABLE, Verdict.WARMUP)

# A coarse meter and the exact one that it contains: if the exact one does not grow, the coarse
# one's growth is holes, cache or shared pages, which are bounded by the largest working set.
CONTAINS = {
    Role.RESIDENT: (Role.UNIQUE,),
    Role.PROPORTIONAL: (Role.UNIQUE,),
    Role.DEVICE_RESERVED: (Role.DEVICE_ALLOCATED,),
}

COUNTS = (Role.TENSORS, Role.OBJECTS, Role.PROCESSES, Role.COUNTER)


def fuse(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings with those overruled by a more exact series of the same process marked."""
    return tuple(_overruled(f, findings) for f in findings)


def _overruled(finding: Finding, findings: Sequence[Finding]) -> Finding:
    if finding.verdict is not Verdict.LEAK:
        return finding
    for other in findings:
        if (
            other.process == finding.process
            and other.role in CONTAINS.get(finding.role, ())
            and other.verdict in CALM
            and other.samples >= finding.samples // 2
        ):
            return replace(finding, verdict=Verdict.INCONCLUSIVE, reason=Reason.OVERRULED)
    return finding


def decide(findings: Sequence[Finding]) -> tuple[Verdict, float, int | None]:
    """Verdict of the recording, its confidence, and the series that decides it.

    A leak of one process's memory is a leak. Without one, a doubt about memory is a doubt; counts
    decide only where no memory was recorded.
    """
    meters = [i for i, f in enumerate(findings) if f.role not in NO_METERS and f.role not in COUNTS]
    pool = meters or [i for i, f in enumerate(findings) if f.role not in NO_METERS]
    pool = pool or list(range(len(findings)))
    if not pool:
        return Verdict.INCONCLUSIVE, 0.5, None
    best = max(pool, key=lambda i: (_weight(findings[i]), findings[i].confidence, -i))
    return findings[best].verdict, findings[best].confidence, best


def _weight(finding: Finding) -> int:
    order = (Verdict.STABLE, Verdict.WARMUP, Verdict.INCONCLUSIVE, Verdict.LEAK)
    return order.index(finding.verdict)


def evidence(findings: Sequence[Finding], decided_by: int | None) -> tuple[Evidence, ...]:
    """What the other series say to the one that decides."""
    if decided_by is None:
        return ()
    subject = findings[decided_by]
    out = []
    if subject.restarts:
        out.append(Evidence(kind=EvidenceKind.EARLIER_RUN, subject=_name(subject)))
    if subject.verdict in (Verdict.LEAK, Verdict.INCONCLUSIVE):
        for other in findings:
            kind = _says(other)
            if other.process == subject.process and kind is not None:
                out.append(
                    Evidence(
                        kind=kind,
                        subject=_name(subject),
                        against=_name(other),
                        supports=other.verdict,
                    )
                )
    return tuple(out)


def _says(other: Finding) -> EvidenceKind | None:
    calm = other.verdict in CALM
    if other.role is Role.TENSORS:
        return EvidenceKind.TENSORS_FLAT if calm else EvidenceKind.TENSORS_GROW
    if other.role is Role.IN_USE and calm:
        return EvidenceKind.IN_USE_FLAT
    if other.role is Role.DEVICE_ALLOCATED and calm:
        return EvidenceKind.ALLOCATED_FLAT
    if other.role is Role.PROCESSES and other.verdict is Verdict.LEAK:
        return EvidenceKind.PROCESSES_GROW
    if other.role is Role.COUNTER and other.verdict is Verdict.LEAK:
        return EvidenceKind.COUNTER_GROWS
    return None


def _name(finding: Finding) -> str:
    return f"{finding.process} {finding.metric}".strip()

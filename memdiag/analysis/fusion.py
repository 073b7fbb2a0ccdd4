"""Weigh the series of one recording: what each of them says to the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

from memdiag.findings import Evidence, EvidenceKind, Finding, Reason, Verdict
from memdiag.model import Role

CALM = (Verdict.STABLE, Verdict.WARMUP)

# A coarse meter and the exact one that it contains: if the exact one does not grow, the coarse
# one's growth is holes, cache or shared pages, which are bounded by the largest working set.
CONTAINS = {
    Role.RESIDENT: (Role.UNIQUE,),
    Role.PROPORTIONAL: (Role.UNIQUE,),
    Role.DEVICE_RESERVED: (Role.DEVICE_ALLOCATED,),
}

_GROWS = {
    Role.PROCESSES: EvidenceKind.PROCESSES_GROW,
    Role.COUNTER: EvidenceKind.COUNTER_GROWS,
}
_ON_DEVICE = (Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED)
# Counts of tensors that are not in a subject's memory: {subject is on a device: metrics}.
_ELSEWHERE = {
    True: ("tensors_cpu", "tensors_other"),
    False: ("tensors_cuda", "tensors_gpu", "tensors_other"),
}

# An exact meter and the coarse ones that its memory is part of.
PART_OF = {
    Role.IN_USE: (Role.RESIDENT, Role.UNIQUE, Role.PROPORTIONAL),
    Role.DEVICE_ALLOCATED: (Role.DEVICE, Role.DEVICE_RESERVED),
}

FOLLOWS = 0.5
"""A coarse meter shows the exact one's growth if it rose by at least this part of it (chosen:
what was leaked fills holes first)."""


CONFIRMED_CONFIDENCE = 0.95
"""Most confidence that a finding borrows from another series (chosen)."""


def fuse(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, each corrected where a more exact series of the same memory says more."""
    return tuple(_confirmed(_overruled(f, findings), findings) for f in findings)


def _overruled(finding: Finding, findings: Sequence[Finding]) -> Finding:
    if finding.verdict is not Verdict.LEAK:
        return finding
    for other in findings:
        if (
            is_same(finding, other, findings)
            and other.role in _contained(finding, findings)
            and other.verdict in CALM
            and other.samples >= finding.samples // 2
        ):
            return replace(finding, verdict=Verdict.INCONCLUSIVE, reason=Reason.OVERRULED)
    return finding


def _confirmed(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """A coarse meter that rises with a leaking exact one leaks; one that hides it is no calm."""
    if finding.verdict is Verdict.LEAK:
        return finding
    for other in findings:
        part = finding.role in PART_OF.get(other.role, ()) and other.axis == finding.axis
        if not part or other.verdict is not Verdict.LEAK:
            continue
        if not is_same(finding, other, findings):
            continue
        if _rise(finding, other) >= FOLLOWS * _rise(other, other):
            return replace(
                finding,
                verdict=Verdict.LEAK,
                reason=Reason.EXACT_METER,
                confidence=min(other.confidence, CONFIRMED_CONFIDENCE),
                onset_x=other.onset_x,
                plateau=None,
                need_more=None,
            )
        if finding.verdict in CALM:
            return replace(
                finding, verdict=Verdict.INCONCLUSIVE, reason=Reason.OVERRULED, plateau=None
            )
    return finding


def _rise(finding: Finding, leaking: Finding) -> float:
    """How much a series rose since another one's leak began, ends averaged over a tenth."""
    start = finding.first_x if leaking.onset_x is None else leaking.onset_x.value
    points = [p for p in finding.trace if p[0] >= start]
    tenth = max(len(points) // 10, 1)
    if len(points) < 2:
        return 0.0
    return mean(v for _, v in points[-tenth:]) - mean(v for _, v in points[:tenth])


def _contained(finding: Finding, findings: Sequence[Finding]) -> tuple[Role, ...]:
    """Roles whose calm overrules `finding`.

    The driver's figure contains the framework's cache and what is outside the framework. Only
    where the cache grows is it the cache's growth; else it is memory that no framework knows of.
    """
    if finding.role is not Role.DEVICE:
        return CONTAINS.get(finding.role, ())
    cache_grows = any(
        other.role is Role.DEVICE_RESERVED and other.verdict not in CALM
        for other in findings
        if is_same(finding, other, findings)
    )
    return (Role.DEVICE_ALLOCATED,) if cache_grows else ()


def is_same(subject: Finding, other: Finding, findings: Sequence[Finding]) -> bool:
    """Whether two series tell of the same memory: of one process, or of a tree in which only one
    process has such a series."""
    if subject.process == other.process:
        return True
    alike = {f.process for f in findings if f.metric == other.metric}
    return subject.process == "tree" and alike == {other.process}


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
            kind = _says(subject, other)
            if kind is not None and is_same(subject, other, findings):
                out.append(
                    Evidence(
                        kind=kind,
                        subject=_name(subject),
                        against=_name(other),
                        supports=other.verdict,
                    )
                )
    return tuple(out)


def _says(subject: Finding, other: Finding) -> EvidenceKind | None:
    """What a series says to the growth of another; nothing about the other kind of memory."""
    if other.role in _GROWS:
        return _GROWS[other.role] if other.verdict is Verdict.LEAK else None
    if other.role is Role.TENSORS:
        return _tensors_say(subject, other)
    return _calm_says(subject, other.role) if other.verdict in CALM else None


def _calm_says(subject: Finding, calm: Role) -> EvidenceKind | None:
    is_cache = subject.role is Role.DEVICE_RESERVED or subject.reason is Reason.OVERRULED
    if calm is Role.IN_USE and subject.role not in _ON_DEVICE:
        return EvidenceKind.IN_USE_FLAT
    if calm is Role.DEVICE_ALLOCATED and subject.role in _ON_DEVICE and is_cache:
        return EvidenceKind.ALLOCATED_FLAT
    if calm is Role.DEVICE_RESERVED and subject.role is Role.DEVICE:
        return EvidenceKind.RESERVED_FLAT
    return None


def _tensors_say(subject: Finding, other: Finding) -> EvidenceKind | None:
    """Tensors count where they are: those of a GPU say nothing of host memory."""
    if other.metric in _ELSEWHERE[subject.role in _ON_DEVICE]:
        return None
    if other.verdict is Verdict.LEAK:
        return EvidenceKind.TENSORS_GROW
    return EvidenceKind.TENSORS_FLAT if other.verdict in CALM else None


def _name(finding: Finding) -> str:
    return f"{finding.process} {finding.metric}".strip()

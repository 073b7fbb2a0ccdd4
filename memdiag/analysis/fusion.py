"""Weigh the series of one recording: what each of them says to the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from memdiag.analysis import device, garbage
from memdiag.analysis.device import CALM, FOLLOWS, ON_DEVICE, rise
from memdiag.analysis.garbage import PYTHON_BLOCKS
from memdiag.findings import Evidence, EvidenceKind, Finding
from memdiag.model import Role
from memdiag.policy import DEFAULT, PAGES
from memdiag.verdicts import Reason, Verdict

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
# What accumulates beside calm memory, each told once.
_COUNTED = {
    Role.TENSORS: EvidenceKind.COUNT_GROWS,
    Role.OBJECTS: EvidenceKind.COUNT_GROWS,
    Role.PROCESSES: EvidenceKind.PROCESSES_GROW,
}
MALLOC = "malloc_bytes"
IN_PART = frozenset({"tensor_bytes", "jax_array_bytes"})
"""Memory in use, but a part of it: that it is calm says nothing of the rest."""
TOUCHED = 0.1
"""Pages that grow within what malloc holds free all the time are its own, touched at last, up to
this part of their level: beyond it a leak of memory unknown to malloc would hide (chosen)."""
# Samples from which on an exact meter's calm says something of pages (chosen: twice what a slope
# test needs to tell a tenth of a percent per step from none).
SETTLING_SAMPLES = 20
# Counts of tensors that are not in a subject's memory: {subject is on a device: metrics}.
ELSEWHERE = {
    True: ("tensors_cpu", "tensors_other"),
    False: ("tensors_cuda", "tensors_gpu", "tensors_other", "vram_allocations", "xpu_allocations"),
}

# An exact meter and the coarse ones that its memory is part of.
PART_OF = {
    Role.IN_USE: (Role.RESIDENT, Role.UNIQUE, Role.PROPORTIONAL),
    Role.DEVICE_ALLOCATED: (Role.DEVICE, Role.DEVICE_RESERVED),
}

_BEHIND = 0.05
"""A meter's last reading may be so much of the run older than another's and tell of its end
(chosen)."""

_SLOW = 0.1
"""Part of its mean rate that growth may go on at where most of it has settled (chosen): a leak
beside a cache goes on at a third of it or more."""

ALONE = 0.9
"""A process has a job's growth to itself with this part of what all its like grow by (chosen)."""

CONFIRMED_CONFIDENCE = 0.95
"""Most confidence that a finding borrows from another series (chosen)."""


def fuse(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, each corrected where a more exact series of the same memory says more."""
    waiting = garbage.waiting(findings)
    overruled = (_overruled(f, findings) for f in findings)
    corrected = tuple(garbage.left_open(f, waiting, findings) for f in overruled)
    return tuple(_confirmed(f, corrected) for f in corrected)


def _overruled(finding: Finding, findings: Sequence[Finding]) -> Finding:
    if finding.verdict is not Verdict.LEAK:
        return finding
    if _is_holes(finding, findings) or _has_settled(finding, findings):
        return replace(finding, verdict=Verdict.INCONCLUSIVE, reason=Reason.OVERRULED)
    for other in findings:
        if (
            is_same(finding, other, findings)
            and _contains(finding, other, findings)
            and other.verdict in CALM
            and other.samples >= finding.samples // 2
        ):
            return replace(finding, verdict=Verdict.INCONCLUSIVE, reason=Reason.OVERRULED)
    return finding


def _is_holes(finding: Finding, findings: Sequence[Finding]) -> bool:
    """Pages grow with what malloc holds free, or within it (some was never touched before), while
    all that is in use is steady: holes between blocks, which the largest working set bounds.
    """
    if finding.role not in PAGES:
        return False
    same = [f for f in findings if is_same(finding, f, findings) and f.axis == finding.axis]
    calm = {f.metric for f in same if f.verdict in CALM and f.samples >= SETTLING_SAMPLES}
    grown = rise(finding, finding)
    free = [f for f in same if f.role is Role.HOLES and f.metric.startswith("malloc_")]
    small = grown <= TOUCHED * finding.peak_value
    explained = any(
        rise(holes, finding) >= FOLLOWS * grown > 0 or (small and holes.peak_value >= grown)
        for holes in free
    )
    return explained and {MALLOC, PYTHON_BLOCKS} <= calm


def _has_settled(finding: Finding, findings: Sequence[Finding]) -> bool:
    """It grew as memory in use did, and no more than slowly since that has settled: a cache that
    is full.

    Pages go on rising for a while by holes, and tensors may not have been counted since.
    """
    if finding.role not in PAGES and not is_on_host(finding, findings):
        return False
    grown, length = rise(finding, finding), finding.last_x - finding.first_x
    for f in findings:
        known = f.metric == MALLOC and f.verdict in CALM and f.samples >= SETTLING_SAMPLES
        ends = finding.last_x - f.last_x <= _BEHIND * length
        same = f.axis == finding.axis and is_same(finding, f, findings)
        if known and ends and same and rise(f, finding) >= FOLLOWS * grown > 0:
            return _slow_since(finding, f, grown / length)
    return False


def is_on_host(tensors: Finding, findings: Sequence[Finding]) -> bool:
    """What is known of tensors, none of which come and go on a device: malloc knows all of them."""
    return tensors.metric in IN_PART and all(
        f.verdict in CALM
        for f in findings
        if f.process == tensors.process and f.metric in ELSEWHERE[False]
    )


def _slow_since(finding: Finding, settled: Finding, pace: float) -> bool:
    if settled.plateau is None:
        return False
    later = rise(finding, replace(settled, onset_x=settled.plateau.since_x))
    way = finding.last_x - settled.plateau.since_x.value
    return later <= max(_SLOW * pace * way, DEFAULT.common.touched_bytes)


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
        if rise(finding, other) >= FOLLOWS * rise(other, other):
            return replace(
                _without_rate(finding),
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


def _without_rate(finding: Finding) -> Finding:
    """Of pages that were given back in the end, the last rate is not that of what leaks."""
    rate = finding.growth_per_x
    if rate is None or rate.low > 0:
        return finding
    return replace(finding, growth_per_x=None, growth_per_s=None, growth_per_epoch=None)


def _contains(finding: Finding, other: Finding, findings: Sequence[Finding]) -> bool:
    """Whether the calm of `other` overrules the growth of `finding`.

    The driver's figure contains the framework's cache and what is outside the framework. Only
    where the cache grows is it the cache's growth; else it is memory that no framework knows of.
    Blocks that wait for another stream are neither in use nor free for the cache.
    """
    if finding.role is Role.DEVICE:
        caches = [f for f in findings if f.role is Role.DEVICE_RESERVED and f.verdict not in CALM]
        growing = [f for f in caches if is_same(finding, f, findings)]
        if not growing or not all(device.is_pair(f, other) for f in growing):
            return False
        inside = other.role is Role.DEVICE_ALLOCATED
    else:
        inside = other.role in CONTAINS.get(finding.role, ())
    waiting = any(
        device.is_active(f) and f.verdict not in CALM and device.is_pair(f, other) for f in findings
    )
    return inside and not (other.role is Role.DEVICE_ALLOCATED and waiting)


def is_same(subject: Finding, other: Finding, findings: Sequence[Finding]) -> bool:
    """Whether two series tell of the same memory: of one process, or of a tree in which only one
    process has such a series."""
    if not device.one_source(subject, other):
        return False
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
    if subject.verdict is Verdict.LEAK and _is_alone(subject, findings):
        out.append(Evidence(kind=EvidenceKind.ONE_PROCESS, subject=_name(subject)))
    if subject.verdict in CALM:
        out += _holes_beside(subject, findings)
        out += _counts_beside(subject, findings)
    else:
        for other in findings:
            if is_same(subject, other, findings):
                out += [
                    Evidence(
                        kind=kind,
                        subject=_name(subject),
                        against=_name(other),
                        supports=other.verdict,
                    )
                    for kind in _says(subject, other, findings)
                ]
    return (*_consistent(out), *device.events(findings))


def _holes_beside(subject: Finding, findings: Sequence[Finding]) -> Iterator[Evidence]:
    """Pages that grow by holes alone, beside a meter that is calm."""
    for pages in findings:
        held = [f for f in findings if f.metric == MALLOC and is_same(pages, f, findings)]
        if pages.reason is not Reason.OVERRULED or pages.role not in PAGES or not held:
            continue
        if rise(held[0], pages) < FOLLOWS * rise(pages, pages):
            yield Evidence(
                kind=EvidenceKind.IN_USE_FLAT,
                subject=_name(pages),
                against=_name(held[0]),
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
                subject=_name(subject),
                against=_name(counted),
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


def _is_alone(subject: Finding, findings: Sequence[Finding]) -> bool:
    """Other processes do the same work (they have such a series too), and do not grow like it."""
    alike = [f for f in findings if f.metric == subject.metric and f.process not in {"", "tree"}]
    growths = [max(0.0, speed(f)) for f in alike if f.verdict not in CALM]
    if len(alike) < 2 or subject not in alike:
        return False
    return speed(subject) >= ALONE * sum(growths) > 0


def speed(finding: Finding) -> float:
    """Growth per second where there is a clock, else per unit of the axis."""
    growth = finding.growth_per_s or finding.growth_per_x
    return 0.0 if growth is None else growth.value


def _says(subject: Finding, other: Finding, findings: Sequence[Finding]) -> Iterator[EvidenceKind]:
    """What a series says to the growth of another; nothing about the other kind of memory."""
    if subject.role in ON_DEVICE:
        yield from device.says(subject, other, findings)
    kind = None if device.is_allocations(other) else _one_says(subject, other)
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


def _name(finding: Finding) -> str:
    return f"{finding.process} {finding.metric}".strip()

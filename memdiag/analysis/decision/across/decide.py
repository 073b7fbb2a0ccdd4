"""The decision on a whole recording: its series correct each other, then one of them speaks.

1. A leak of a coarse meter is overruled where a more exact one of the same memory does not grow,
   and left open where it may be garbage; a leak of an exact meter confirms the coarse ones around
   it.
2. A leak of one process's memory is a leak. So is one of Python's blocks, each of which is memory:
   small ones come out of arenas of 1 MB, so that pages show them late, and in steps.
3. Without one, a doubt about memory is a doubt, unless other series settle it.
4. Else the series that people ask for first speaks, a warm-up before a stable one.
Other counts (tensors, objects, processes) decide only where no memory was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from memdiag.analysis.decision.across import (
    bounded_by,
    calm_part,
    calm_processes,
    exact_meter,
    holes,
    passing_process,
    read_more_often,
    settled_malloc,
    uncollected_garbage,
)
from memdiag.analysis.decision.across.meters import (
    COUNTS,
    MALLOC,
    PYTHON_BLOCKS,
    Cross,
    Meters,
    corrected,
    first,
    speed,
)
from memdiag.analysis.policy import DEFAULT, EXACT_ROLES, NO_METERS, Policy
from memdiag.values.findings import Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Reason, Verdict

# What takes a leak away, asked of the findings as they are,
OVERRULES = (
    holes.CHECK,
    settled_malloc.CHECK,
    calm_part.CHECK,
    calm_processes.CHECK,
    uncollected_garbage.CHECK,
)
# then what an exact meter adds.
CONFIRMS = (exact_meter.CHECK,)
# What makes a doubt none about the recording.
SETTLES = (
    calm_processes.CHECK,
    read_more_often.CHECK,
    bounded_by.CHECK,
    passing_process.CHECK,
)


def everything() -> tuple[Cross[Any], ...]:
    """Every check across series, for the documentation and the ablation."""
    return (*OVERRULES, *CONFIRMS, *SETTLES)


# Which of several leaking series tells most: an exact meter has the true rate, a process tells
# more than the tree.
_TELLS_MOST = (
    Role.DEVICE_ALLOCATED,
    Role.IN_USE,
    Role.UNIQUE,
    Role.DEVICE,
    Role.DEVICE_RESERVED,
    Role.RESIDENT,
    Role.PROPORTIONAL,
)
# What people ask for first when nothing grows.
_SPEAK = (Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED, Role.RESIDENT)
_ASKED_FIRST = (
    *_SPEAK,
    Role.UNIQUE,
    Role.PROPORTIONAL,
    Role.IN_USE,
)
# Python takes what is larger from malloc (Objects/obmalloc.c).
_LARGEST_SMALL_BYTES = 512  # exact: SMALL_REQUEST_THRESHOLD


def correct(findings: Sequence[Finding], policy: Policy = DEFAULT) -> tuple[Finding, ...]:
    """The findings, each corrected where a more exact series of the same memory says more."""
    meters = Meters(findings=findings, policy=policy)
    overruled = tuple(
        corrected(f, OVERRULES, meters) if f.verdict is Verdict.LEAK else f for f in findings
    )
    after = replace(meters, findings=overruled)
    return tuple(corrected(f, CONFIRMS, after) for f in overruled)


def decide(
    findings: Sequence[Finding],
    ended: frozenset[str] = frozenset(),
    policy: Policy = DEFAULT,
) -> tuple[Verdict, float, int | None]:
    """Verdict of the recording, its confidence, and the index of the series that decides it.

    ended: processes that were gone well before the recording's end.
    """
    meters = Meters(findings=findings, policy=policy, ended=ended)
    pool = _pool(findings)
    leaks = [i for i in pool if findings[i].verdict is Verdict.LEAK]
    leaks = leaks or [i for i, f in enumerate(findings) if _is_leak_of_blocks(f)]
    if leaks:
        return _answer(findings, _telling(leaks, meters))
    doubts = [
        i
        for i in pool
        if findings[i].verdict is Verdict.INCONCLUSIVE
        and first(SETTLES, findings[i], meters) is None
    ]
    if doubts:
        return _answer(findings, max(doubts, key=_by_samples(findings)))
    calm = [i for i in pool if findings[i].verdict in CALM]
    if not calm:
        even = 0.5  # exact: nothing is known either way
        return Verdict.INCONCLUSIVE, even, pool[0] if pool else None
    return _answer(findings, _asked_first(calm, meters))


def settled(
    findings: Sequence[Finding], ended: frozenset[str], policy: Policy
) -> tuple[Finding, ...]:
    """The findings, those that others settle with the argument on their trail. The verdict of one
    becomes calm where the argument is that its memory cannot grow."""
    meters = Meters(findings=findings, policy=policy, ended=ended)
    return tuple(_settled(f, meters) if f.verdict is Verdict.INCONCLUSIVE else f for f in findings)


def _settled(finding: Finding, meters: Meters) -> Finding:
    found = first(SETTLES, finding, meters)
    if found is None:
        return finding
    check, argument = found
    if check.change is not None:
        return corrected(finding, (check,), meters)
    return replace(finding, trail=(*finding.trail, replace(argument, is_decisive=False)))


def _is_leak_of_blocks(finding: Finding) -> bool:
    return finding.metric == PYTHON_BLOCKS and finding.verdict is Verdict.LEAK


def _pool(findings: Sequence[Finding]) -> list[int]:
    meters = [i for i, f in enumerate(findings) if f.role not in NO_METERS]
    memory = [i for i in meters if findings[i].role not in COUNTS]
    return memory or meters or [*range(len(findings))]


def _answer(findings: Sequence[Finding], at: int) -> tuple[Verdict, float, int]:
    return findings[at].verdict, findings[at].confidence, at


def _rank(role: Role, order: Sequence[Role]) -> int:
    return order.index(role) if role in order else len(order)


def _by_samples(findings: Sequence[Finding]) -> Callable[[int], tuple[int, int]]:
    return lambda i: (findings[i].samples, -_rank(findings[i].role, _ASKED_FIRST))


def _telling(leaks: Sequence[int], meters: Meters) -> int:
    """The leak that names its process, its rate and its phase best.

    A leak that another series confirmed (`exact_meter`) has a rate of its own that tells little:
    pages rise by holes, or were hardly read. Holes make pages rise by a multiple of the leak, too,
    so that an exact meter goes before pages whose growth has found its phase.
    """
    owners = {f.process for f in meters.findings if _owns(f, meters)}

    def key(at: int) -> tuple[bool, bool, bool, bool, bool, int, float]:
        finding = meters.findings[at]
        owns = finding.process in owners
        borrowed = finding.reason is Reason.EXACT_METRIC
        explained = any(phase.is_attributed for phase in finding.phases)
        rank = _rank(finding.role, _TELLS_MOST)
        exact, partial = finding.role in EXACT_ROLES, _overlooks_objects(finding, meters)
        return not owns, partial, borrowed, not exact, not explained, rank, -speed(finding)

    return min(leaks, key=key)


def _overlooks_objects(malloc: Finding, meters: Meters) -> bool:
    """Small Python objects leak beside it, which come out of arenas of their own: the pages, which
    grow by several times as much, and by no more than such objects can take, have the rate.
    """
    own = [f for f in meters.findings if f.process == malloc.process and f.verdict is Verdict.LEAK]
    pages = max((speed(f) for f in own if f.role is Role.RESIDENT), default=0.0)
    objects = max((speed(f) for f in own if f.metric == PYTHON_BLOCKS), default=0.0)
    if malloc.metric != MALLOC or pages < meters.policy.reporting.overlooked * speed(malloc):
        return False
    return 0 < pages - speed(malloc) <= _LARGEST_SMALL_BYTES * objects


def _owns(finding: Finding, meters: Meters) -> bool:
    """Its process has most of what the whole tree grows by, in the same kind of memory.

    What is not known of the tree (malloc, counts) cannot show that, unless nothing is.
    """
    trees = {f.metric: speed(f) for f in meters.findings if f.process == "tree"}
    if finding.process == "tree" or (trees and finding.metric not in trees):
        return False
    whole = trees.get(finding.metric, 0.0)
    if whole <= 0:
        return finding.verdict is Verdict.LEAK
    return speed(finding) >= meters.policy.reporting.owns * whole


def _asked_first(calm: Sequence[int], meters: Meters) -> int:
    """Device and resident memory before the rest; a warm-up is news, a stable series is not, nor is
    what was seen for a small part of the run."""
    findings = meters.findings
    most = max(findings[i].samples for i in calm)
    candidates = [i for i in calm if findings[i].role in _SPEAK] or list(calm)
    return min(
        candidates,
        key=lambda i: (
            findings[i].samples < meters.policy.common.short_share * most,
            findings[i].verdict is not Verdict.WARMUP,
            _rank(findings[i].role, _ASKED_FIRST),
            findings[i].process == "tree",
            -findings[i].peak_value,
        ),
    )

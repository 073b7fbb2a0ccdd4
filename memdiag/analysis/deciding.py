"""Which series of a recording speaks for all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memdiag.analysis.device import CALM, ON_DEVICE
from memdiag.analysis.fusion import (
    IN_PART,
    MALLOC,
    SETTLING_SAMPLES,
    is_on_host,
    is_same,
    speed,
)
from memdiag.analysis.garbage import PYTHON_BLOCKS
from memdiag.findings import Finding
from memdiag.model import Role
from memdiag.policy import EXACT_ROLES, NO_METERS, PAGES
from memdiag.verdicts import Reason, Verdict

COUNTS = frozenset({Role.TENSORS, Role.OBJECTS, Role.PROCESSES, Role.COUNTER})
"""Roles that count things and not memory: they explain, and decide only where nothing else can."""

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
# What people ask for first when all is calm.
_ASKED_FIRST = (
    Role.DEVICE,
    Role.DEVICE_RESERVED,
    Role.DEVICE_ALLOCATED,
    Role.RESIDENT,
    Role.UNIQUE,
    Role.PROPORTIONAL,
    Role.IN_USE,
)
# What a calm meter bounds: pages of a process alone cannot grow where all its pages do not.
_BOUNDS = {Role.RESIDENT: frozenset({Role.UNIQUE, Role.PROPORTIONAL})}
# A process that grows by this part of the tree's growth has it to itself (chosen).
_OWNS = 0.5
# Of pages that grow by so many times what malloc grows by, malloc tells too little (chosen).
_OVERLOOKED = 2.0
# Python takes what is larger from malloc (Objects/obmalloc.c).
_LARGEST_SMALL_BYTES = 512
# What has fewer samples than this part of the most was there for a part of the run (chosen).
_PASSING = 0.25
# Growth of malloc by more than this part of it over the run is told by few readings, too (chosen).
_SCATTER = 0.05
# Processes that have so much of a tree's memory between them leave no room for others (chosen).
_NEARLY_ALL = 0.9


def decide(
    findings: Sequence[Finding], ended: frozenset[str] = frozenset()
) -> tuple[Verdict, float, int | None]:
    """Verdict of the recording, its confidence, and the index of the series that decides it.

    1. A leak of one process's memory is a leak. So is one of Python's blocks, each of which is
       memory: small ones come out of arenas of 1 MB, so that pages show them late, and in steps.
    2. Without one, a doubt about memory is a doubt, unless another meter of the same memory that
       knows more has settled it: calm RSS bounds USS and PSS that were read more seldom, and calm
       exact meters (malloc and Python's blocks together) leave to the pages only the allocator's
       holes, which the largest working set bounds; malloc bounds tensors on the host. A meter that
       was hardly read says nothing against those that were, nor does a process that has `ended`
       since, or has just begun, against a tree whose pages are calm.
    3. Else the series that people ask for first speaks, a warm-up before a stable one.
    Other counts (tensors, objects, processes) decide only where no memory was recorded.
    """
    pool = _pool(findings)
    leaks = [i for i in pool if findings[i].verdict is Verdict.LEAK]
    leaks = leaks or [i for i, f in enumerate(findings) if _is_leak_of_blocks(f)]
    if leaks:
        return _answer(findings, _telling(leaks, findings))
    doubts = [
        i
        for i in pool
        if findings[i].verdict is Verdict.INCONCLUSIVE
        and not _settled(findings[i], findings)
        and not (_is_passing(findings[i], findings, ended) and _tree_is_calm(findings))
    ]
    if doubts:
        return _answer(findings, max(doubts, key=_by_samples(findings)))
    calm = [i for i in pool if findings[i].verdict in CALM]
    if not calm:
        return Verdict.INCONCLUSIVE, 0.5, pool[0] if pool else None
    return _answer(findings, _asked_first(calm, findings))


def _is_passing(doubtful: Finding, findings: Sequence[Finding], ended: frozenset[str]) -> bool:
    """A process that has ended, or was there for a small part of the run: a worker that each epoch
    starts anew."""
    if doubtful.role in ON_DEVICE:  # of which the tree's pages say nothing
        return False
    seen = [f.samples for f in findings if f.process == doubtful.process and f.role in PAGES]
    trees = [f.samples for f in findings if f.process == "tree" and f.role in PAGES]
    is_part = doubtful.process not in {"", "main", "tree"}
    hardly = max(seen, default=0) < _PASSING * max(trees, default=0)
    return (is_part and hardly) or doubtful.process in ended


def _is_leak_of_blocks(finding: Finding) -> bool:
    return finding.metric == PYTHON_BLOCKS and finding.verdict is Verdict.LEAK


def _pool(findings: Sequence[Finding]) -> list[int]:
    meters = [i for i, f in enumerate(findings) if f.role not in NO_METERS]
    return (
        [i for i in meters if findings[i].role not in COUNTS] or meters or [*range(len(findings))]
    )


def _answer(findings: Sequence[Finding], at: int) -> tuple[Verdict, float, int]:
    return findings[at].verdict, findings[at].confidence, at


def _rank(role: Role, order: Sequence[Role]) -> int:
    return order.index(role) if role in order else len(order)


def _by_samples(findings: Sequence[Finding]) -> Callable[[int], tuple[int, int]]:
    return lambda i: (findings[i].samples, -_rank(findings[i].role, _ASKED_FIRST))


def _telling(leaks: Sequence[int], findings: Sequence[Finding]) -> int:
    """The leak that names its process, its rate and its phase best.

    A leak that another series confirmed (`fusion`) has a rate of its own that tells little: pages
    rise by holes, or were hardly read. Holes make pages rise by a multiple of the leak, too, so
    that an exact meter goes before pages whose growth has found its phase.
    """
    owners = {f.process for f in findings if _owns(f, findings)}

    def key(at: int) -> tuple[bool, bool, bool, bool, bool, int, float]:
        finding = findings[at]
        owns = finding.process in owners
        borrowed = finding.reason is Reason.EXACT_METER
        explained = any(phase.blamed for phase in finding.phases)
        rank = _rank(finding.role, _TELLS_MOST)
        exact, partial = finding.role in EXACT_ROLES, _overlooks_objects(finding, findings)
        return not owns, partial, borrowed, not exact, not explained, rank, -speed(finding)

    return min(leaks, key=key)


def _overlooks_objects(malloc: Finding, findings: Sequence[Finding]) -> bool:
    """Small Python objects leak beside it, which come out of arenas of their own: the pages, which
    grow by several times as much, and by no more than such objects can take, have the rate.
    """
    own = [f for f in findings if f.process == malloc.process and f.verdict is Verdict.LEAK]
    pages = max((speed(f) for f in own if f.role is Role.RESIDENT), default=0.0)
    objects = max((speed(f) for f in own if f.metric == PYTHON_BLOCKS), default=0.0)
    if malloc.metric != MALLOC or pages < _OVERLOOKED * speed(malloc):
        return False
    return 0 < pages - speed(malloc) <= _LARGEST_SMALL_BYTES * objects


def _owns(finding: Finding, findings: Sequence[Finding]) -> bool:
    """Its process has most of what the whole tree grows by, in the same kind of memory.

    What is not known of the tree (malloc, counts) cannot show that, unless nothing is.
    """
    trees = {f.metric: speed(f) for f in findings if f.process == "tree"}
    if finding.process == "tree" or (trees and finding.metric not in trees):
        return False
    whole = trees.get(finding.metric, 0.0)
    return speed(finding) >= _OWNS * whole if whole > 0 else finding.verdict is Verdict.LEAK


def _settled(doubtful: Finding, findings: Sequence[Finding]) -> bool:
    if doubtful.process == "tree" and _parts_are_calm(doubtful, findings):
        return True
    same = [f for f in findings if f.verdict in CALM and is_same(doubtful, f, findings)]
    if doubtful.reason is Reason.TOO_FEW_SAMPLES:
        return any(f.role not in COUNTS and f.samples > doubtful.samples for f in same)
    bounded = any(
        doubtful.role in _BOUNDS.get(f.role, ()) and f.samples >= doubtful.samples for f in same
    )
    if doubtful.metric == MALLOC:
        return _is_known_without(doubtful, same)
    if is_on_host(doubtful, findings):
        return any(f.metric == MALLOC and f.samples >= SETTLING_SAMPLES for f in same)
    if bounded or doubtful.role not in PAGES:
        return bounded
    known = [f for f in same if f.samples >= SETTLING_SAMPLES and f.metric not in IN_PART]
    return {Role.IN_USE, Role.OBJECTS} <= {f.role for f in known}


def _is_known_without(malloc: Finding, calm: Sequence[Finding]) -> bool:
    """Too few readings of malloc to tell, and its process is calm by all else: its pages where they
    were read much more often, its pages, objects and tensors else.
    """
    known = {f.role for f in calm if f.samples >= SETTLING_SAMPLES}
    if malloc.reason is not Reason.UNCERTAIN_TREND or Role.RESIDENT not in known:
        return False
    growth = malloc.growth_per_x
    way = (malloc.last_x - malloc.first_x) * (0.0 if growth is None else growth.value)
    if growth is None or (growth.low > 0 and way > _SCATTER * malloc.peak_value):
        return False
    return malloc.samples < SETTLING_SAMPLES or {Role.OBJECTS, Role.TENSORS} <= known


def _tree_is_calm(findings: Sequence[Finding]) -> bool:
    pages = [f.verdict for f in findings if f.process == "tree" and f.role is Role.RESIDENT]
    return bool(pages) and all(verdict in CALM for verdict in pages)


def _parts_are_calm(tree: Finding, findings: Sequence[Finding]) -> bool:
    """Every process of a tree is calm by the same meter, and together they are nearly all of it:
    small steps of each at different times make no growth of the whole.
    """
    parts = [f for f in findings if f.metric == tree.metric and f.process not in {"", "tree"}]
    number = [f for f in findings if f.role is Role.PROCESSES]
    return (
        len(parts) > 1
        and all(f.verdict in CALM for f in (*parts, *number))
        and max(part.samples for part in parts) >= tree.samples // 2
        and sum(part.latest_value for part in parts) >= _NEARLY_ALL * tree.latest_value
    )


def _asked_first(calm: Sequence[int], findings: Sequence[Finding]) -> int:
    """Device and resident memory before the rest; a warm-up is news, a stable series is not, nor is
    what was seen for a small part of the run."""
    most = max(findings[i].samples for i in calm)
    first = [i for i in calm if findings[i].role in _ASKED_FIRST[:4]] or list(calm)
    return min(
        first,
        key=lambda i: (
            findings[i].samples < _PASSING * most,
            findings[i].verdict is not Verdict.WARMUP,
            _rank(findings[i].role, _ASKED_FIRST),
            findings[i].process == "tree",
            -findings[i].peak_value,
        ),
    )

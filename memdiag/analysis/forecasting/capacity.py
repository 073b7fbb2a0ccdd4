"""The smallest card or container for the run, where its memory or its length is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memdiag.values.capacity import Capacity, Memory
from memdiag.values.findings import Finding
from memdiag.values.measurements import Limit, Role, Unit
from memdiag.values.thresholds import one_gpu
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

# Which series represent a memory, the most specific first, and which others may object.
_REPRESENTS = {Memory.DEVICE: (Role.DEVICE, Role.DEVICE_RESERVED), Memory.HOST: (Role.RESIDENT,)}
_OBJECTS = {
    Memory.DEVICE: frozenset({Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED}),
    Memory.HOST: frozenset({Role.RESIDENT, Role.UNIQUE, Role.PROPORTIONAL, Role.IN_USE}),
}

GB = 10**9
# Memory of the cards that are sold, by vendors' data sheets. Taken as decimal: a card of 24 GB
# holds 24 GiB minus what error correction and the driver keep, 22.5 GiB (24.2e9 bytes) on an L4.
CARDS_GB = (4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 141, 180, 192, 256, 288)
# Usual sizes of containers: powers of two, and those between (heuristic).
CONTAINERS_GB = tuple(n * 2**k / 4 for k in range(15) for n in (1, 1.5))
SIZES_GB = {Memory.DEVICE: CARDS_GB, Memory.HOST: CONTAINERS_GB}

MARGIN = 1.05
"""Room above the peak that is needed: runs differ, and samples miss the very top (heuristic)."""
COMFORT = 1.2
"""... and with which a somewhat longer sequence or larger batch still fits (heuristic)."""


def capacity(findings: Sequence[Finding], limits: Sequence[Limit]) -> tuple[Capacity, ...]:
    """What each memory that was measured takes; none where that is not known."""
    return tuple(found for memory in Memory for found in _of(memory, findings, limits))


def _of(memory: Memory, findings: Sequence[Finding], limits: Sequence[Limit]) -> Iterator[Capacity]:
    at = _representative(memory, findings)
    if at is None:
        return
    finding = findings[at]
    same = [f for f in findings if f.role in _OBJECTS[memory]]
    grows = any(f.verdict is Verdict.LEAK for f in same)
    if grows:
        yield from _growing(memory, at, finding, limits)
    elif finding.verdict in STABLE_OR_WARMUP and not finding.peaks_grow:
        yield _sized(memory, at, finding, limits, peak=finding.peak_value)


def _growing(
    memory: Memory, at: int, finding: Finding, limits: Sequence[Limit]
) -> Iterator[Capacity]:
    """Unbounded growth fits nowhere; up to a planned end it may."""
    planned = finding.forecasts[0] if finding.planned and finding.forecasts else None
    if planned is None:
        yield Capacity(memory=memory, series=at, is_bounded=False, peak_bytes=finding.peak_value)
    elif finding.verdict is Verdict.LEAK:
        peak = max(finding.peak_value, planned.value.high)
        yield _sized(memory, at, finding, limits, peak=peak, until_x=planned.at_x)


def _sized(
    memory: Memory,
    at: int,
    finding: Finding,
    limits: Sequence[Limit],
    *,
    peak: float,
    until_x: float | None = None,
) -> Capacity:
    tightest = min(
        (
            limit
            for limit in limits
            if finding.role in limit.roles and limit.holds_for(finding.metric, finding.process)
        ),
        key=lambda limit: limit.value_bytes,
        default=None,
    )
    return Capacity(
        memory=memory,
        series=at,
        is_bounded=until_x is None,
        peak_bytes=peak,
        until_x=until_x,
        needs_bytes=_smallest(memory, peak * MARGIN),
        comfortable_bytes=_smallest(memory, peak * COMFORT),
        limit="" if tightest is None else tightest.name,
        limit_bytes=None if tightest is None else tightest.value_bytes,
    )


def _smallest(memory: Memory, room_bytes: float) -> int | None:
    """The smallest size that holds this much; None where none is large enough."""
    fitting = [round(size * GB) for size in SIZES_GB[memory] if size * GB >= room_bytes]
    return min(fitting, default=None)


def _representative(memory: Memory, findings: Sequence[Finding]) -> int | None:
    """Index of the series that shows what one card, or one container, has to hold.

    Of a tree on several GPUs the fullest one counts; of several processes without a tree none
    does, because they may not share a container. Each has a card to itself.
    """
    for role in _REPRESENTS[memory]:
        used = ((i, f) for i, f in enumerate(findings) if not f.falling)
        fit = [i for i, f in used if f.role is role and f.unit is Unit.BYTES]
        single = [i for i in fit if one_gpu(findings[i].metric)]
        trees = [i for i in fit if findings[i].process == "tree"]
        candidates = single or trees or fit
        if memory is Memory.HOST and len(candidates) > 1:
            continue
        if candidates:
            return max(candidates, key=lambda i: findings[i].peak_value)
    return None

"""Growth that is not evidence of a leak, whatever its shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from memdiag.analysis.decision.case import Case, Rule, Window, rule
from memdiag.analysis.decision.prior import is_exact, regular_odds
from memdiag.analysis.parameters import number
from memdiag.analysis.policy import NOT_EVIDENCE_ROLES, PAGES, Policy
from memdiag.analysis.preprocessing.prepare import Prepared
from memdiag.values.measurements import AxisKind, Role, Unit
from memdiag.values.verdict import Argument, Reason, Verdict


@Rule
def negligible(case: Case, window: Window) -> Argument | None:
    """Growth that stays negligible over the run's plan, or over a horizon that few runs reach.

    A training keeps a little of every step (loss histories, interned objects); nobody looks for a
    leak of a hundred bytes a step over a million steps. What healthy jobs keep per step (per second
    where no steps are known, which is what the probe itself keeps) is held against the lower end of
    the rate, if the rate itself is not beyond twice as much; if it is, the series is left open.
    """
    prepared, slope = window.fit.prepared, window.trend.slope
    horizon, grown, least = extrapolate(prepared, slope, case.policy, case.context.planned_x)
    numbers = {"grown_y": grown, "horizon_x": horizon, "least_y": least}
    if grown < least:
        return Argument(
            text="it would grow by {grown_y} in {horizon_x}, and less than {least_y} does not "
            "matter",
            numbers=numbers,
            reason=Reason.NEGLIGIBLE,
            verdict=Verdict.STABLE,
        )
    low = (slope - window.trend.half_width()) * horizon
    usual = _background(prepared, case.policy) * horizon
    if usual <= 0 or low >= usual:
        return None
    is_usual = grown < 2 * least
    return Argument(
        text="it would grow by {grown_y} in {horizon_x}, or by only {low_y}, and healthy jobs gain "
        "{least_y}",
        numbers={**numbers, "low_y": max(low, 0.0)},
        reason=Reason.NEGLIGIBLE if is_usual else Reason.UNCERTAIN_TREND,
        verdict=Verdict.STABLE if is_usual else Verdict.INCONCLUSIVE,
    )


def _background(prepared: Prepared, policy: Policy) -> float:
    """What healthy jobs gain of this metric per step, or per second; 0 on other axes, of counts
    that are not of Python's blocks, and where the unit is unknown.
    """
    is_known = prepared.unit is Unit.BYTES or prepared.metric == "python_blocks"
    if not is_known or prepared.axis.kind not in (AxisKind.STEP, AxisKind.SECONDS):
        return 0.0
    return policy.materiality.background_per_step.get(prepared.role, 0.0)


def extrapolate(
    prepared: Prepared, slope: float, policy: Policy, planned_x: float | None
) -> tuple[float, float, float]:
    """How far it looks ahead, growth at this slope by then, and the least growth that matters."""
    given, kind = policy.materiality, prepared.axis.kind
    horizon = max(policy.horizon(kind), policy.common.fewest * prepared.run)
    if planned_x is not None and len(prepared.x) and planned_x > prepared.x[-1]:
        horizon = float(planned_x - prepared.x[-1])
    grown = max(slope * horizon, float(prepared.y[-1] - prepared.y[0]))
    least = policy.common.stable_growth * prepared.level
    if prepared.unit is Unit.BYTES:
        least = max(least, min(given.least_bytes, policy.common.most * prepared.level))
    return horizon, grown, max(least, _background(prepared, policy) * horizon)


@dataclass(frozen=True, slots=True, kw_only=True)
class InProportion:
    """What is in proportion to the position of the run."""

    off: float = number(0.02, "largest value", "how far a reading may be off, besides rounding")
    start: float = number(0.5, "last position", "where the first reading must be at the latest")


@rule(InProportion())
def in_proportion(case: Case, window: Window, parameters: InProportion) -> Argument | None:
    """An amount of nothing at position 0 that grows in proportion to a counter with a known end is
    what the run is for, such as a cache that it fills; no process is without memory at its start.
    """
    x, y, end_x = case.prepared.all_x, case.prepared.all_y, case.context.planned_x
    if end_x is None or not 0 < x[-1] < end_x or x[0] > parameters.start * x[-1] or y[-1] <= 0:
        return None
    per_x = float((x * y).sum() / (x * x).sum())
    off = np.abs(y - per_x * x).max()
    if off > parameters.off * y[-1] + case.prepared.quantum:
        return None
    return Argument(
        text="it grows in proportion to a counter that ends at {end_x}, and would be {end_y} then",
        numbers={"end_x": end_x, "end_y": per_x * end_x},
        reason=Reason.FILLING,
        need_x=end_x - float(x[-1]),
    )


@Rule
def not_a_meter(case: Case, window: Window) -> Argument | None:
    """A metric that also grows without a leak.

    Address space, page cache, free blocks, event counts: these only rise, or can be reclaimed at
    any time.
    """
    if case.prepared.role not in NOT_EVIDENCE_ROLES:
        return None
    return Argument(
        text="a metric of this kind also grows without a leak, so its growth is not evidence of "
        "one",
        reason=Reason.NOT_MEMORY,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeList:
    """How much a free list takes."""

    pools: Mapping[str, float] = number(
        MappingProxyType({"python_blocks": 8000.0}),
        "blocks",
        "growth of a metric that pools may be: four lists of tuples",
        "CPython, Objects/tupleobject.c",
    )


@rule(FreeList())
def free_list(case: Case, window: Window, parameters: FreeList) -> Argument | None:
    """Objects that an interpreter keeps for reuse count as in use until its free list is full.

    Python's blocks include its free lists. Those for tuples take 2,000 each, one list for each
    length (CPython, Objects/tupleobject.c). Each backward pass of torch adds a tuple to one of
    them, and so does each job of a `multiprocessing.Pool`. Some fill at the same time: a step of
    Transformers' Trainer adds 16 blocks, until there are 5,300 more.
    """
    prepared, grown = case.prepared, window.trend.slope * window.span_x
    pool = parameters.pools.get(prepared.metric, 0.0)
    if not 0 < grown < pool:
        return None
    return Argument(
        text="it grew by {grown_y}, and Python keeps up to {pool_y} freed blocks for reuse",
        numbers={"grown_y": grown, "pool_y": pool},
        reason=Reason.STILL_CLIMBING,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTouch:
    """How much may be touched for the first time: at most `Policy.common.touched_bytes`, and no
    more than the larger of these two."""

    share: float = number(5e-3, "level", "part of the level, for small processes")
    least_bytes: float = number(2.0**18, "bytes", "what Python's allocator takes at a time")


@rule(FirstTouch())
def first_touch(case: Case, window: Window, parameters: FirstTouch) -> Argument | None:
    """Pages that a process touches for the first time: heaps, libraries and a parent's memory after
    a fork exist before they are in RAM, and first use raises the pages of a process along a line as
    straight as a leak's. While a program starts, that may be any number of pages, however many
    steps it makes meanwhile: threads, arenas and compiled functions come with the time.

    Memory in use that grows as little, and not by equal amounts, may be garbage and small caches.
    """
    prepared, slope = window.fit.prepared, window.trend.slope
    rise, most = slope * window.span_x, touched(prepared, case.policy)
    if most == 0 or rise <= 0:
        return None
    start_s, pace_s = case.policy.common.start_s, prepared.seconds_per_x
    run_x = float(case.prepared.x[-1] - case.prepared.x[0])
    if prepared.role in PAGES and pace_s and run_x * pace_s < start_s:
        return Argument(
            text="the run lasted {run_s}, and for the first {start_s} growth may be the start "
            "of the program: libraries, threads, compiled functions",
            numbers={"run_s": run_x * pace_s, "start_s": start_s},
            reason=Reason.FEW_PAGES,
            need_x=start_s / pace_s - run_x,
        )
    if rise >= most:
        return None
    if prepared.role not in PAGES and regular_odds(window.fit, case.policy) > 1:
        return None
    return Argument(
        text="it rose by {rise_y}, and a program without a leak can rise by up to {most_y} as it "
        "first uses memory that it already owns, and fills small caches",
        numbers={"rise_y": rise, "most_y": most},
        reason=Reason.FEW_PAGES,
        need_x=(most - rise) / slope,
    )


def touched(prepared: Prepared, policy: Policy) -> float:
    """Bytes by which the pages or the memory in use of a process on the host may rise without a
    leak; 0 for other metrics."""
    if prepared.role not in PAGES | {Role.IN_USE} or prepared.unit is not Unit.BYTES:
        return 0.0
    given: FirstTouch = first_touch.given(policy)
    share = max(given.share * prepared.level, given.least_bytes)
    return min(policy.common.touched_bytes, share)


@dataclass(frozen=True, slots=True, kw_only=True)
class UncollectedHeap:
    """When growth of a garbage-collected heap is evidence."""

    growth: float = number(
        2.5, "1", "times it has grown without a collection", "GOGC=100 doubles; V8 times four"
    )


@rule(UncollectedHeap())
def uncollected_heap(case: Case, window: Window, parameters: UncollectedHeap) -> Argument | None:
    """A garbage-collected heap grows until it is collected: Go doubles (GOGC=100), V8 lets it grow
    by at most four.
    """
    prepared = window.fit.prepared
    if prepared.role is not Role.COLLECTED_HEAP or prepared.falls >= case.policy.common.fewest:
        return None
    y = prepared.all_y
    times = float(y[-1]) / max(float(np.abs(y).min()), 1e-300)
    if times >= parameters.growth or is_exact(window.fit, case.policy):
        return None
    return Argument(
        text="too few garbage collections were seen ({collections}), and it is only at "
        "{times} times its lowest reading",
        numbers={"times": times, "collections": float(prepared.falls)},
        reason=Reason.NOT_COLLECTED,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightRecorder:
    """How much torch's flight recorder takes."""

    most_bytes: float = number(4e6, "bytes", "of a rank: more than twice of what was measured")
    takes: Mapping[Role, float] = number(
        MappingProxyType(
            {Role.IN_USE: 1.0, Role.RESIDENT: 2.0, Role.UNIQUE: 2.0, Role.PROPORTIONAL: 2.0}
        ),
        "1",
        "times as much of a role: pages come in arenas and huge ones, of 2 MB each",
    )


@rule(FlightRecorder())
def flight_recorder(case: Case, window: Window, parameters: FlightRecorder) -> Argument | None:
    """Buffers of a fixed length: growth by equal amounts, until they are full.

    torch keeps the last 2,000 collectives of each rank of a distributed job, to report them when
    one hangs (`TORCH_FR_BUFFER_SIZE`). At one a step, malloc in use grows for 2,000 steps, longer
    than nearly all warm-ups last, and then stops. Its size is known: 1.6 MB were measured with
    gloo and one collective a step, 370 bytes each and a list that doubles; none with a size of 0.
    NCCL's entries have stack traces as well.
    """
    prepared = case.prepared
    room = case.context.records * parameters.most_bytes * parameters.takes.get(prepared.role, 0.0)
    if room == 0:
        return None
    first = int(np.searchsorted(prepared.x, prepared.x[-1] - window.span_x))
    grown = float(prepared.y[-1] - prepared.y[min(first, window.first_sample) :].min())
    left, slope = room - grown, window.trend.slope
    if left <= 0:
        return None
    return Argument(
        text="it grew by {grown_y}, and torch's record of recent collectives can take up to "
        "{room_y} before it is full",
        numbers={"grown_y": grown, "room_y": room},
        reason=Reason.FILLING,
        need_x=left / slope if slope > 0 else None,
    )

"""Growth that may be garbage: objects in reference cycles that Python has dropped but not freed.

Python frees those when its collector runs. The old ones wait for a full collection, which comes
when a quarter more objects are old than after the last one (CPython, Modules/gcmodule.c): beside
torch, which has hundreds of thousands, a program may run for thousands of steps without one. Until
then, what a closed matplotlib figure or a finished trainer leaves behind grows as a leak does.

The youngest are freed once there are some hundred of them. Few objects that hold large tensors take
as long as that, too, and the probe measures what nothing refers to any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from memdiag.analysis.decision.across.series_set import (
    MALLOC,
    PYTHON_BLOCKS,
    Changes,
    SeriesSet,
    onset,
    speed,
)
from memdiag.analysis.decision.case import Rule, rule
from memdiag.analysis.parameters import number
from memdiag.analysis.policy import HELD, PAGES
from memdiag.values.findings import Finding, NeedMore
from memdiag.values.measurements import ON_DEVICE, Role, Unit
from memdiag.values.verdict import STABLE_OR_WARMUP, Argument, Reason, Verdict

FULL, FULL_FREED = "gc_full_collections", "gc_full_freed_objects"
YOUNG_FREED = "gc_young_freed_objects"
ENABLED = "gc_enabled"
# What young objects hold that nothing refers to: {it is on a device: metric}.
UNREACHABLE = {False: "gc_unreachable_bytes", True: "gc_unreachable_device_bytes"}
Trace = Sequence[tuple[float, float]]
WHY = "Python has to run a few full garbage collections"
WHY_YOUNG = "Python has to run a few garbage collections"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """When growth may be garbage."""

    most_bytes: float = number(
        65536.0, "bytes an object", "that garbage may hold on average: 424 where figures are closed"
    )


@rule(Parameters())
def uncollected_garbage(
    finding: Finding, series: SeriesSet, parameters: Parameters
) -> tuple[Argument, Changes] | None:
    """Growth that may be garbage: objects in cycles that Python has dropped but not yet freed.

    Leaves a leak of host memory inconclusive until Python has collected a few times, unless names
    of the program lead to most of it.
    """
    if finding.role in {*ON_DEVICE, Role.PROCESSES, Role.COUNTER}:
        return None
    waiting = _waiting(series)
    if finding.process == "tree":
        alike = [f for f in series.findings if f.metric == finding.metric]
        parts = [f for f in alike if f.process in waiting and not _is_kept(f, series)]
        least = (1 - series.policy.common.little) * series.rise(finding, finding)
        may_be = bool(waiting) and sum(series.rise(f, finding) for f in parts) >= least
    else:
        may_be = finding.process in waiting and _can_be(finding, series, parameters)
    if not may_be:
        return None
    argument = Argument(
        text="the growth may be objects in reference cycles, which Python frees only in a full "
        "garbage collection",
        reason=Reason.NOT_COLLECTED,
        need_x=finding.last_x - finding.first_x,
    )
    return argument, _until_collected(finding, series, WHY)


@Rule
def young_garbage(finding: Finding, series: SeriesSet) -> tuple[Argument, Changes] | None:
    """Most of the growth is held by young objects in cycles that nothing refers to.

    Leaves a leak inconclusive until Python has collected them. With the collector switched off, and
    never called, it is a leak.
    """
    parts = [finding]
    if finding.process == "tree":
        parts = [f for f in series.findings if f.metric == finding.metric and f is not finding]
    held = [(f, *_unreachable(f, series)) for f in parts]
    held = [(f, waits, grown) for f, waits, grown in held if waits >= _most(series, grown) > 0]
    least = (1 - series.policy.common.little) * series.rise(finding, finding)
    if not held or (parts != [finding] and sum(series.rise(f, finding) for f, *_ in held) < least):
        return None
    argument = Argument(
        text="{part_share} of its growth is held by objects in reference cycles that nothing "
        "refers to, which Python frees in its next garbage collections",
        numbers={"part_share": min(1.0, sum(h[1] for h in held) / sum(h[2] for h in held))},
        reason=Reason.NOT_COLLECTED,
        need_x=finding.last_x - finding.first_x,
    )
    return argument, _until_collected(finding, series, WHY_YOUNG)


@Rule
def collected(finding: Finding, series: SeriesSet) -> tuple[Argument, Changes] | None:
    """One collection has freed all that had grown, and about as much has grown since.

    It is the second tooth of a sawtooth, of garbage that is freed so rarely that no third one was
    seen. A leak beneath it would have been left over. Of memory in use that is not stable.
    """
    if finding.verdict in STABLE_OR_WARMUP or finding.role not in HELD or finding.role in ON_DEVICE:
        return None
    common, way = series.policy.common, finding.last_x - finding.first_x
    trace = [p for p in finding.trace if p[0] >= finding.first_x + common.slight * way]
    falls = [before - after for (_, before), (_, after) in pairwise(trace)]
    if not falls or max(falls) <= 0:
        return None
    fall, at = max(falls), falls.index(max(falls)) + 1
    values = [y for _, y in trace]
    low, since = values[at], series.rise(finding, trace[at][0])
    early = trace[at][0] < series.warmed_up_x(finding)
    # Otherwise it was a spike.
    grew = median(values[at // 2 : at]) - low >= common.warm_share * fall
    none_left = low - min(values[:at]) <= common.little * fall
    if early or not grew or not none_left or since > 2 * fall:
        return None
    if not _freed_between(finding, trace[at - 1][0], trace[at][0], series):
        return None
    argument = Argument(
        text="a garbage collection freed {fall_y}, all that it had grown by, and it has grown by "
        "{since_y} since: objects in reference cycles, which Python frees from time to time",
        numbers={"fall_y": fall, "since_y": since},
        reason=Reason.BOUNDED_CYCLES,
        verdict=Verdict.STABLE,
    )
    sure = series.policy.reporting.open_confidence
    return argument, {"confidence": sure, "onset_x": None, "forecasts": (), "limit_hits": ()}


def _freed_between(finding: Finding, before_x: float, after_x: float, series: SeriesSet) -> bool:
    """Return True if the collector freed most of what it has freed at all between two positions."""
    for counter in series.findings:
        if counter.process == finding.process and counter.metric in (FULL_FREED, YOUNG_FREED):
            trace = _trace_beside(finding, counter)
            around = (
                [y for x, y in trace if x <= before_x][-1:],
                [y for x, y in trace if x >= after_x],
            )
            gained = _gained(trace, finding.first_x)
            if all(around) and around[1][0] - around[0][0] >= _most(series, gained) > 0:
                return True
    return False


def _most(series: SeriesSet, grown: float) -> float:
    return series.policy.common.most * grown


def _unreachable(finding: Finding, series: SeriesSet) -> tuple[float, float]:
    """What unreachable young objects held of its growth, and how much it had grown by then, each
    summed over the moments when the probe has looked. Of tensors that are counted, their bytes; of
    pages that grow mostly as malloc does, what malloc has in use: the rest lies between.
    """
    known = {f.metric: f for f in series.findings if f.process == finding.process}
    finding = known.get("tensor_bytes", finding) if finding.role is Role.TENSORS else finding
    malloc = known.get(MALLOC)
    if malloc is not None and finding.role in PAGES:
        grown = series.rise(finding, finding)
        finding = malloc if series.rise(malloc, finding) >= _most(series, grown) else finding
    waits, enabled = known.get(UNREACHABLE[finding.role in ON_DEVICE]), known.get(ENABLED)
    if waits is None or enabled is None or finding.unit is not Unit.BYTES:
        return 0.0, 0.0
    full, began = known.get(FULL), onset(finding)
    collects = full is not None and _gained(_trace_beside(finding, full), began) > 0
    if not (enabled.trace[-1][1] or collects):
        return 0.0, 0.0
    looks = [look for look in _trace_beside(finding, waits) if look[0] >= began]
    x, y = np.transpose(looks or [(began, 0.0)])
    values = np.interp([began, *x], *np.transpose(finding.trace))
    grown = values[1:] - values[0]
    return float(np.minimum(y, grown.clip(0)).sum()), float(grown.sum())


def _until_collected(finding: Finding, series: SeriesSet, why: str) -> Changes:
    length, seconds = finding.last_x - finding.first_x, None
    if finding.growth_per_x is not None and finding.growth_per_s and finding.growth_per_s.value > 0:
        seconds = length * finding.growth_per_x.value / finding.growth_per_s.value
    return {
        "onset_x": None,
        "limit_hits": (),
        "forecasts": (),
        "confidence": series.policy.reporting.open_confidence,
        "need_more": NeedMore(more_x=length, more_s=seconds, why=why),
    }


def _waiting(series: SeriesSet) -> frozenset[str]:
    """Processes whose Python objects grow or may grow, also by little or until they fall again, and
    whose growth may be garbage that waits."""
    known = {(f.process, f.metric): f for f in series.findings}
    growing = [f for f in series.findings if f.metric == PYTHON_BLOCKS and _may_grow(f)]
    return frozenset(b.process for b in growing if _waits(b, known, series))


def _may_grow(blocks: Finding) -> bool:
    by_little = blocks.growth_per_x is not None and blocks.growth_per_x.low > 0
    is_open = blocks.verdict not in STABLE_OR_WARMUP or blocks.reason is Reason.BOUNDED_CYCLES
    return is_open or by_little


def _is_kept(finding: Finding, series: SeriesSet) -> bool:
    """Return True if most of its growth is reachable from names of the program: not garbage."""
    known = series.kept.get(finding.process)
    return known is not None and known.per_s >= _most(series, speed(finding)) > 0


def _can_be(finding: Finding, series: SeriesSet, parameters: Parameters) -> bool:
    """Return True if a growth of bytes may be what objects in cycles hold."""
    if finding.unit is not Unit.BYTES or finding.growth_per_x is None:
        return True
    if _is_kept(finding, series):
        return False
    own = (finding.process, PYTHON_BLOCKS)
    objects = sum(speed(f) for f in series.findings if (f.process, f.metric) == own)
    return speed(finding) <= parameters.most_bytes * objects


def _waits(blocks: Finding, known: dict[tuple[str, str], Finding], series: SeriesSet) -> bool:
    common = series.policy.common
    values = [known.get((blocks.process, name)) for name in (FULL, FULL_FREED, YOUNG_FREED)]
    start, end, growth = onset(blocks), blocks.last_x, blocks.growth_per_x
    if None in values or growth is None:
        return False
    full, freed, young = (_trace_beside(blocks, value) for value in values if value is not None)
    collections = _gained(full, start)
    if collections >= common.fewest or not end > start:
        return False
    if collections > 0:
        garbage, grown = _freed_by_the_last(full, freed, blocks.trace), growth.value
    else:
        lately = (start + end) / 2  # (what a program starts with is another thing)
        garbage, grown = _gained(young, lately), series.rise(blocks, lately)
    return garbage >= common.warm_share * grown


def _freed_by_the_last(full: Trace, freed: Trace, blocks: Trace) -> float:
    """Objects that the last full collection freed, or blocks if those are more (an object has
    several), per axis unit since the one before."""
    rises = [(x, y) for (_, before), (x, y) in pairwise(full) if y > before]
    last_x, before_x = rises[-1][0], rises[-2][0] if len(rises) > 1 else full[0][0]
    way = max(last_x - before_x, 1e-9)  # exact: no division by 0
    return max(_change_at(last_x, freed), -_change_at(last_x, blocks)) / way


def _change_at(at_x: float, values: Trace) -> float:
    """From the last value before a position to the first from there on, 0 without one of them."""
    after = [y for x, y in values if x >= at_x][:1]
    before = [y for x, y in values if x < at_x][-1:]
    return after[0] - before[0] if after and before else 0.0


def _trace_beside(finding: Finding, other: Finding) -> Trace:
    """The trace of another series on the axis of a finding. One that was read more rarely may be on
    another axis, of seconds: then at the same parts of the run."""
    if other.axis == finding.axis:
        return other.trace
    times = (finding.last_x - finding.first_x) / max(other.last_x - other.first_x, 1e-300)
    return [(finding.first_x + times * (x - other.first_x), y) for x, y in other.trace]


def _gained(counter: Trace, start: float) -> float:
    values = [y for x, y in counter if x >= start]
    return values[-1] - values[0] if values else 0.0

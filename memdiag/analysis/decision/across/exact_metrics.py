"""An exact metric and the coarse ones that contain its memory."""

from __future__ import annotations

from typing import Any

from memdiag.analysis.decision.across.series_set import (
    IN_PART,
    MALLOC,
    PYTHON_BLOCKS,
    SMALLEST_BYTES,
    Changes,
    SeriesSet,
    is_active,
    is_pair,
    name,
)
from memdiag.analysis.decision.case import Rule
from memdiag.analysis.policy import PAGES
from memdiag.probe.ring_format import BLOCK_BYTES
from memdiag.values.findings import Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import STABLE_OR_WARMUP, Argument, Reason, Verdict

# Coarse metrics, and exact ones of memory in them.
CONTAINS = {
    Role.RESIDENT: (Role.UNIQUE,),
    Role.PROPORTIONAL: (Role.UNIQUE,),
    Role.DEVICE_RESERVED: (Role.DEVICE_ALLOCATED,),
}
# An exact metric and the coarse ones that its memory is part of.
PART_OF = {
    Role.IN_USE: (Role.RESIDENT, Role.UNIQUE, Role.PROPORTIONAL),
    Role.DEVICE_ALLOCATED: (Role.DEVICE, Role.DEVICE_RESERVED),
}

# Why growth is open that may be none.
_MAY_BE_CHANCE = (Reason.UNCERTAIN_TREND, Reason.RECENT_STEP)


@Rule
def stable_part(finding: Finding, series: SeriesSet) -> Argument | None:
    """A coarse metric grows, and the exact one that it contains does not.

    Its growth is fragmentation, cache or shared pages, which the largest working set bounds.
    """
    for other in series.same(finding):
        if other.verdict not in STABLE_OR_WARMUP or other.samples < finding.samples // 2:
            continue
        if _contains(finding, other, series) and series.saw(other, finding):
            return Argument(
                text="a metric that counts memory in it more exactly does not grow",
                against=name(other),
                reason=Reason.OVERRULED,
            )
    return None


def _contains(finding: Finding, other: Finding, series: SeriesSet) -> bool:
    """Return True if `other`, which does not grow, overrules the growth of `finding`.

    The driver's value contains the framework's cache and what is outside the framework. Only where
    the cache grows is it the cache's growth; else it is memory that no framework knows of. Blocks
    that wait for another stream are neither in use nor free for the cache.
    """
    if finding.role is Role.DEVICE:
        caches = [
            f
            for f in series.same(finding)
            if f.role is Role.DEVICE_RESERVED and f.verdict not in STABLE_OR_WARMUP
        ]
        if not caches or not all(is_pair(f, other) for f in caches):
            return False
        inside = other.role is Role.DEVICE_ALLOCATED
    else:
        inside = other.role in CONTAINS.get(finding.role, ())
    waiting = any(
        is_active(f) and f.verdict not in STABLE_OR_WARMUP and is_pair(f, other)
        for f in series.findings
    )
    return inside and not (other.role is Role.DEVICE_ALLOCATED and waiting)


_HOLES = (
    "it rose by {grown_y} and malloc's free memory by {free_y}, while memory in use does not leak: "
    "the growth is holes between blocks"
)
_OPEN = (
    "it rose by {grown_y}, which free memory of malloc may explain (it rose by {free_y}), and "
    "whether memory in use leaks is not decided"
)


@Rule
def holes(finding: Finding, series: SeriesSet) -> Argument | None:
    """Pages grow with what malloc holds free, while no memory in use leaks.

    This is fragmentation between blocks, which the largest working set bounds; or free memory
    within them, as some was never touched before, and a little beside malloc. (Where memory in use
    is still open, so is the recording: `bounded_by` needs it to be level.)
    """
    if finding.role not in PAGES:
        return None
    common = series.policy.common
    same = [f for f in series.same(finding) if f.axis == finding.axis and series.saw(f, finding)]
    not_leaking = {
        f.metric
        for f in same
        if f.verdict in STABLE_OR_WARMUP
        or (f.verdict is not Verdict.LEAK and f.samples >= common.few_samples)
    }
    grown = series.rise(finding, finding)
    small = grown <= common.little * finding.peak_value
    for free in same:
        if free.role is not Role.HOLES or not free.metric.startswith("malloc_"):
            continue
        risen = series.rise(free, finding)
        untouched = free.peak_value + common.touched_bytes
        explains = risen >= common.most * grown > 0 or (small and untouched >= grown)
        if explains and {MALLOC, PYTHON_BLOCKS} <= not_leaking:
            is_open = any(
                f.metric in {MALLOC, PYTHON_BLOCKS} and f.verdict is Verdict.INCONCLUSIVE
                for f in same
            )
            return Argument(
                text=_OPEN if is_open else _HOLES,
                against=name(free),
                numbers={"grown_y": grown, "free_y": risen},
                reason=Reason.OVERRULED,
            )
    return None


@Rule
def settled_malloc(finding: Finding, series: SeriesSet) -> Argument | None:
    """It grew as memory in use did, and at most slowly since that stopped growing.

    Memory in use is what malloc hands out; for pages, Python's blocks as well where those do not
    grow either, for the least that they can be. A cache that is full looks like this. Pages keep
    rising for a while by fragmentation, as much as malloc's free memory or slowly, and tensors may
    not have been counted since. Overrules a leak of pages, or of tensors on the host.
    """
    if finding.role not in PAGES and not series.is_on_host(finding):
        return None
    common = series.policy.common
    grown, length = series.rise(finding, finding), finding.last_x - finding.first_x
    sizes = {MALLOC: 1, PYTHON_BLOCKS: SMALLEST_BYTES if finding.role in PAGES else 0}
    known = [
        f
        for f in series.same(finding)
        if f.metric in sizes
        and f.verdict in STABLE_OR_WARMUP
        and f.samples >= common.few_samples
        and finding.last_x - f.last_x <= common.slight * length
        and f.axis == finding.axis
    ]
    risen = [series.rise(f, finding) * sizes[f.metric] for f in known]
    if MALLOC in {f.metric for f in known} and sum(risen) >= common.most * grown > 0:
        most = known[risen.index(max(risen))]
        return _slow_since(finding, most, common.little * grown / length, series)
    return None


def _slow_since(
    finding: Finding, settled: Finding, pace: float, series: SeriesSet
) -> Argument | None:
    if settled.plateau is None:
        return None
    since = settled.plateau.since_x.value
    free = [f for f in series.same(finding) if f.role is Role.HOLES and f.axis == finding.axis]
    risen = [series.rise(f, since) for f in free if f.metric.startswith("malloc_")]
    later = max(0.0, series.rise(finding, since) - max(risen, default=0.0))
    if later > max(pace * (finding.last_x - since), series.policy.common.touched_bytes):
        return None
    return Argument(
        text="beside free memory of malloc it rose by no more than {later_y} since memory in use "
        "stopped growing",
        against=name(settled),
        numbers={"later_y": later},
        reason=Reason.OVERRULED,
    )


@Rule
def read_to_the_end(finding: Finding, series: SeriesSet) -> Argument | None:
    """An exact metric grew as long as it was read, and what contains its memory did not since.

    It decides for the stretch that its readings cover, and not against newer ones. These say
    nothing for a while where they did not show its growth before, as pages do not that were there.
    """
    common = series.policy.common
    containing = PART_OF.get(finding.role, ())
    rate = 0.0 if finding.growth_per_x is None else finding.growth_per_x.value
    for f in series.same(finding):
        if (
            f.role not in containing
            or f.verdict not in STABLE_OR_WARMUP
            or series.is_as_recent(finding, f)
        ):
            continue
        since_x, later = f.last_x - finding.last_x, series.rise(f, finding.last_x)
        shows = series.rise(f, finding) - later >= common.most * series.rise(finding, finding)
        is_long = since_x > common.short_share * (finding.last_x - finding.first_x)
        if later < common.most * rate * since_x and (shows or is_long):
            return Argument(
                text="its readings end at {last_x}, and what contains its memory does not grow "
                "after that",
                numbers={"last_x": finding.last_x},
                against=name(f),
                reason=Reason.OVERRULED,
            )
    return None


@Rule
def exact_meter(finding: Finding, series: SeriesSet) -> Argument | tuple[Argument, Changes] | None:
    """A coarse metric that rises with a leaking exact one leaks; one that hides it is open.

    Pages that rise with leaking blocks of Python leak as well. Pages that do not rise do not
    contradict such a leak, since blocks come out of arenas.
    """
    if finding.verdict is Verdict.LEAK:
        return None
    for exact in series.same(finding):
        is_blocks = exact.metric == PYTHON_BLOCKS
        part = finding.role in PART_OF.get(Role.IN_USE if is_blocks else exact.role, ())
        if not part or exact.axis != finding.axis or exact.verdict is not Verdict.LEAK:
            continue
        least = series.policy.common.most * series.rise(exact, exact)
        if series.rise(finding, exact) >= least * (BLOCK_BYTES if is_blocks else 1):
            confirmed = Argument(
                text="it grows together with a metric that counts memory in it exactly and leaks",
                against=name(exact),
                reason=Reason.EXACT_METRIC,
                verdict=Verdict.LEAK,
            )
            return confirmed, _borrowed(finding, exact, series)
        is_stable = finding.verdict in STABLE_OR_WARMUP and not is_blocks
        if is_stable and series.is_as_recent(exact, finding):
            return Argument(
                text="a metric that counts memory in it exactly leaks, which it does not show",
                reason=Reason.OVERRULED,
                against=name(exact),
            )
    return None


def _borrowed(finding: Finding, exact: Finding, series: SeriesSet) -> dict[str, Any]:
    """What the finding takes from the exact metric.

    Of pages that were released in the end, the last rate is not that of the leak.
    """
    changes: dict[str, Any] = {
        "confidence": min(exact.confidence, series.policy.reporting.borrowed_confidence),
        "onset_x": exact.onset_x,
    }
    rate = finding.growth_per_x
    if rate is not None and rate.low <= 0:
        changes |= {"growth_per_x": None, "growth_per_s": None, "growth_per_epoch": None}
    return changes


@Rule
def bounded_by(finding: Finding, series: SeriesSet) -> tuple[Argument, Changes] | None:
    """The memory that contains a series does not grow: then the series cannot either.

    Pages of a process alone are among all its pages; malloc holds all tensors of the host; beside
    what malloc and Python's own allocator hand out, pages have the fragmentation between, which the
    largest working set bounds. There, growth that may be chance and is less than pages gain without
    a leak does not count. Memory in use may grow in holes between pages, so it also has to show no
    growth beyond chance, and to have gained as little or to have no higher readings at the end. A
    series that rose is a warm-up. Settles what is inconclusive, and overrules a leak of USS or PSS
    that were read less than half as often.
    """
    if finding.reason is Reason.TOO_FEW_SAMPLES:
        return None
    common, reporting = series.policy.common, series.policy.reporting
    same = series.same(finding)
    level = [f for f in same if _is_level(f, series) and series.saw(f, finding)]
    leaks = finding.verdict is Verdict.LEAK
    least_samples = finding.samples / (common.most if leaks else 1)
    as_often = {f.role for f in level if f.samples >= least_samples}
    known = {f.role for f in level if f.samples >= common.few_samples and f.metric not in IN_PART}
    malloc = any(f.metric == MALLOC and f.samples >= common.few_samples for f in level)
    little = finding.samples >= common.few_samples and _is_level(finding, series)
    if finding.role in (Role.UNIQUE, Role.PROPORTIONAL) and Role.RESIDENT in as_often:
        holder = "the resident memory that it is part of"
    elif leaks:
        return None
    elif finding.role is Role.IN_USE and Role.RESIDENT in as_often and little:
        holder = "it has gained little, and the resident memory that it is part of"
    elif (
        finding.role is Role.IN_USE and Role.RESIDENT in as_often and _only_wanders(finding, series)
    ):
        holder = "its highest readings do not rise, and the resident memory that it is part of"
    elif series.is_on_host(finding) and malloc:
        holder = "the memory in use that it is part of"
    elif finding.role in PAGES and {Role.IN_USE, Role.OBJECTS} <= known:
        holder = "the part of it handed out by malloc and Python's own allocator"
    else:
        return None
    rose = series.rise(finding, finding) > common.stable_growth * finding.latest_value
    argument = Argument(
        text=f"{holder} does not grow",
        reason=Reason.OVERRULED,
        verdict=Verdict.WARMUP if rose else Verdict.STABLE,
    )
    sure = min(max(f.confidence for f in level), reporting.borrowed_confidence)
    return argument, {"confidence": sure}


def _is_level(finding: Finding, series: SeriesSet) -> bool:
    """Return True if it is stable; or if what it has gained since the first third, by chance or
    not, is less than pages gain without a leak."""
    sizes = {Role.IN_USE: 1, Role.OBJECTS: BLOCK_BYTES}
    if finding.verdict in STABLE_OR_WARMUP:
        return True
    if finding.reason not in _MAY_BE_CHANCE or finding.role not in sizes:
        return False
    gained = sizes[finding.role] * series.rise(finding, series.warmed_up_x(finding))
    return gained <= series.policy.common.touched_bytes


def _only_wanders(finding: Finding, series: SeriesSet) -> bool:
    """Return True if it shows no growth beyond chance, and after the first third, which may be a
    warm-up, its second half has no higher readings than its first."""
    if finding.reason not in _MAY_BE_CHANCE:
        return False
    common, warm_x = series.policy.common, series.warmed_up_x(finding)
    half_x = (warm_x + finding.last_x) / 2
    before = [y for x, y in finding.trace if warm_x <= x < half_x]
    after = [y for x, y in finding.trace if x >= half_x]
    if min(len(before), len(after)) < common.fewest:
        return False
    return max(after) - max(before) <= common.little * (max(before) - min(before))

"""The decision on a whole recording: its series correct each other, then one of them decides.

1. A leak of a coarse metric is overruled where a more exact one of the same memory does not grow,
   and left open where it may be garbage; a leak of an exact metric confirms the coarse ones around
   it. Each metric speaks for the stretch that its readings cover.
2. A leak of one process's memory is a leak. So is one of Python's blocks, each of which is memory:
   small ones come out of arenas of 1 MB, so that pages show them late, and in steps.
3. Without one, an inconclusive series of memory leaves the recording inconclusive, unless other
   series settle it. One that grows is named before one that is level.
4. Else the series that people ask for first decides, a warm-up before a stable one.
Other counts (tensors, objects, processes) decide only where no memory was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memdiag.analysis.decision.across.exact_metrics import (
    bounded_by,
    exact_meter,
    holes,
    read_to_the_end,
    settled_malloc,
    stable_part,
)
from memdiag.analysis.decision.across.filling_container import filling_container
from memdiag.analysis.decision.across.garbage import (
    collected,
    uncollected_garbage,
    young_garbage,
)
from memdiag.analysis.decision.across.kept_by_names import Kept
from memdiag.analysis.decision.across.processes import (
    counted_again,
    lost_sharing,
    read_more_often,
    short_lived_process,
    stable_processes,
)
from memdiag.analysis.decision.across.same_readings import same_readings
from memdiag.analysis.decision.across.series_set import (
    COUNTS,
    LARGEST_SMALL_BYTES,
    MALLOC,
    PYTHON_BLOCKS,
    SeriesSet,
    beside_malloc,
    decided,
    leaking_pages,
    speed,
    unshared,
)
from memdiag.analysis.decision.case import Rule
from memdiag.analysis.policy import DEFAULT, EXACT_ROLES, NOT_EVIDENCE_ROLES, Policy
from memdiag.values.findings import Finding
from memdiag.values.measurements import ON_DEVICE, FillLevel, Role, Series
from memdiag.values.verdict import STABLE_OR_WARMUP, Reason, Side, Verdict

# What takes a leak away, asked about the findings as they are,
OVERRULES = (
    read_to_the_end,
    holes,
    settled_malloc,
    stable_part,
    stable_processes,
    counted_again,
    short_lived_process,
    uncollected_garbage,
    young_garbage,
    bounded_by,
    same_readings,
)
# First: growth that is bounded, whatever its own verdict; of what is left inconclusive, what cannot
# grow since the memory that contains it, or all that it is the sum of, does not.
EXPLAINS = (lost_sharing, collected, filling_container)
BOUNDS = (bounded_by, stable_processes, same_readings)
# then what an exact metric adds.
CONFIRMS = (exact_meter,)
# What keeps an inconclusive series from leaving the recording inconclusive.
SETTLES = (
    counted_again,
    read_more_often,
    bounded_by,
    read_to_the_end,
    short_lived_process,
)


def everything() -> tuple[Rule, ...]:
    """Every check across series, for the documentation and the ablation."""
    return (*EXPLAINS, *OVERRULES, *CONFIRMS, *SETTLES)


# Which of several leaking series is the most informative: an exact metric has the true rate, a
# process is more specific than the tree.
_MOST_INFORMATIVE = (
    Role.DEVICE_ALLOCATED,
    Role.IN_USE,
    Role.DEVICE,
    Role.DEVICE_RESERVED,
    Role.RESIDENT,
    Role.UNIQUE,
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


def correct(
    findings: Sequence[Finding],
    recorded: Sequence[Series] = (),
    policy: Policy = DEFAULT,
    kept: Mapping[str, Kept] | None = None,
    fill_levels: Sequence[FillLevel] = (),
) -> tuple[Finding, ...]:
    """The findings, each corrected where other series say more about the same memory.

    recorded, kept, fill_levels: see `SeriesSet`.
    """
    series = SeriesSet(
        findings=findings,
        policy=policy,
        recorded=recorded,
        kept=kept or {},
        fill_levels=fill_levels,
    )
    explained = tuple(_corrected(f, EXPLAINS, series) for f in findings)
    series = replace(series, findings=explained)
    bounded = tuple(_corrected(f, BOUNDS, series) if _is_open(f) else f for f in explained)
    series = replace(series, findings=bounded)
    overruled = tuple(
        _corrected(f, OVERRULES, series) if f.verdict is Verdict.LEAK else f for f in bounded
    )
    series = replace(series, findings=overruled)
    return tuple(_corrected(f, CONFIRMS, series) for f in overruled)


def _corrected(finding: Finding, checks: Sequence[Rule], series: SeriesSet) -> Finding:
    found = series.first(checks, finding)
    return finding if found is None else decided(finding, *found)


def decide(
    findings: Sequence[Finding],
    recorded: Sequence[Series] = (),
    policy: Policy = DEFAULT,
) -> tuple[Verdict, float, int | None]:
    """Verdict of the recording, its confidence, and the index of the series that decides it.

    recorded: see `SeriesSet`.
    """
    series = SeriesSet(findings=findings, policy=policy, recorded=recorded)
    pool = _pool(findings)
    leaks = [i for i in pool if findings[i].verdict is Verdict.LEAK]
    leaks = leaks or [i for i, f in enumerate(findings) if _is_leak_of_blocks(f)]
    unsettled = [
        i
        for i in pool
        if findings[i].verdict is Verdict.INCONCLUSIVE
        and not leaks
        and series.first(SETTLES, findings[i]) is None
    ]
    stable = [i for i in pool if findings[i].verdict in STABLE_OR_WARMUP]
    if leaks:
        at = most_informative(leaks, series)
    elif unsettled:
        at = _most_open(unsettled, series)
    elif stable:
        at = _asked_first(stable, series)
    else:
        even = 0.5  # exact: nothing is known either way
        return Verdict.INCONCLUSIVE, even, pool[0] if pool else None
    return findings[at].verdict, findings[at].confidence, at


def settled(
    findings: Sequence[Finding], recorded: Sequence[Series], policy: Policy
) -> tuple[Finding, ...]:
    """The findings, those that others settle with the argument on their trail. The verdict of one
    becomes stable where the argument is that its memory cannot grow."""
    series = SeriesSet(findings=findings, policy=policy, recorded=recorded)
    return tuple(_settled(f, series) if _is_open(f) else f for f in findings)


def _settled(finding: Finding, series: SeriesSet) -> Finding:
    found = series.first(SETTLES, finding)
    if found is None:
        return finding
    argument, changes = found
    if changes:
        return decided(finding, argument, changes)
    return replace(finding, trail=(*finding.trail, replace(argument, is_decisive=False)))


def _is_open(finding: Finding) -> bool:
    return finding.verdict is Verdict.INCONCLUSIVE


def _is_leak_of_blocks(finding: Finding) -> bool:
    return finding.metric == PYTHON_BLOCKS and finding.verdict is Verdict.LEAK


def _pool(findings: Sequence[Finding]) -> list[int]:
    usable = [i for i, f in enumerate(findings) if f.role not in NOT_EVIDENCE_ROLES]
    memory = [i for i in usable if findings[i].role not in COUNTS]
    return memory or usable or [*range(len(findings))]


def _most_open(unsettled: Sequence[int], series: SeriesSet) -> int:
    """What grows before what may not; then what was read often, and what people ask for."""
    findings = series.findings
    growing = [at for at in unsettled if _grows(findings[at])]
    most = max(findings[at].samples for at in growing or unsettled)

    def key(at: int) -> tuple[bool, int, float]:
        finding = findings[at]
        gain = speed(finding) if growing else 0.0
        return _is_rare(finding, most, series), _rank(finding, _ASKED_FIRST), -gain

    return _first_of_larger(growing, key, series) if growing else min(unsettled, key=key)


def _grows(finding: Finding) -> bool:
    """Return True if something speaks for a leak, whatever it is left open for."""
    return any(argument.side is Side.FOR_LEAK for argument in finding.trail)


def _is_rare(finding: Finding, most: int, series: SeriesSet) -> bool:
    """Return True if it was read a few times alone, and others, `most` times, more often."""
    return finding.samples < min(series.policy.common.few_samples, most)


def _first_of_larger(
    candidates: Sequence[int], key: Callable[[int], Any], series: SeriesSet
) -> int:
    """The first by `key`; if it is of host memory, and that of devices gains more than twice as
    much, the first of these; and the other way round."""
    findings = series.findings
    first = min(candidates, key=key)
    is_on_device = findings[first].role in ON_DEVICE
    others = [at for at in candidates if (findings[at].role in ON_DEVICE) is not is_on_device]
    other = min(others, key=key, default=first)
    mine, theirs = findings[first], findings[other]
    is_alike = mine.unit is theirs.unit and (mine.growth_per_s is None) is (
        theirs.growth_per_s is None
    )
    less = speed(mine) < series.policy.common.most * speed(theirs)
    return other if is_alike and less else first


def _rank(finding: Finding, order: Sequence[Role]) -> int:
    return order.index(finding.role) if finding.role in order else len(order)


def most_informative(leaks: Sequence[int], series: SeriesSet) -> int:
    """The leak that names its process, its rate and its phase best.

    A leak that another series confirmed (`exact_meter`) has a rate of its own that means little:
    pages rise by fragmentation, or were rarely read. Fragmentation also makes pages rise by a
    multiple of the leak, so an exact metric goes before pages whose growth has found its phase. One
    that was read a few times alone goes behind those that were read often. Host memory and that of
    devices are apart: one that gains far more goes first.
    """
    owners = {f.process for f in series.findings if _owns(f, series)}
    if not owners:  # several leak: the whole is the sum of them
        leaks = [at for at in leaks if series.findings[at].process == "tree"] or leaks

    most = max(series.findings[at].samples for at in leaks)

    def key(at: int) -> tuple[bool, bool, bool, bool, bool, bool, int, float]:
        finding = series.findings[at]
        rare = _is_rare(finding, most, series)
        owns = finding.process in owners
        borrowed = finding.reason is Reason.EXACT_METRIC
        explained = any(phase.is_attributed for phase in finding.phases)
        rank = _rank(finding, _MOST_INFORMATIVE)
        exact, partial = finding.role in EXACT_ROLES, _overlooks(finding, series)
        return not owns, rare, partial, borrowed, not exact, not explained, rank, -speed(finding)

    return _first_of_larger(leaks, key, series)


def _overlooks(malloc: Finding, series: SeriesSet) -> bool:
    """Return True if malloc knows nothing of most of what its process gains.

    Small Python objects are in arenas of their own, mappings anywhere. What malloc holds free is
    fragmentation; where that is unknown, so is all that exceeds what small objects can take.
    """
    pages = leaking_pages(malloc, series)
    if malloc.metric != MALLOC or pages is None:
        return False
    held, beside = series.rise(malloc, malloc), beside_malloc(malloc, pages, series)
    if beside is None:
        own = [f for f in series.findings if f.process == malloc.process]
        blocks = [f for f in own if f.metric == PYTHON_BLOCKS and f.verdict is Verdict.LEAK]
        most = LARGEST_SMALL_BYTES * sum(series.rise(f, malloc) for f in blocks)
        beside = series.rise(pages, malloc) - held
        beside = beside if beside <= most else 0.0
    return beside > series.policy.common.most * (held + beside) > 0


def _owns(finding: Finding, series: SeriesSet) -> bool:
    """Return True if its process has nearly all of the tree's growth, in the same kind of memory.

    Metrics that the tree does not have (malloc, counts) cannot show that, unless it has none.
    """
    leaks = [f for f in series.findings if f.verdict is Verdict.LEAK]
    trees = {f.metric: speed(f) for f in leaks if f.process == "tree"}
    known = finding.metric in trees or not trees
    if finding.process == "tree" or finding not in leaks or not known:
        return False
    whole = 0.0 if series.is_only(finding.process) else trees.get(finding.metric, 0.0)
    return whole <= 0 or speed(finding) >= series.policy.reporting.owns * whole


def _asked_first(stable: Sequence[int], series: SeriesSet) -> int:
    """Device and resident memory before the rest; a warm-up is worth reporting, a stable series is
    not, nor is one that was seen for a small part of the run. Where the processes of a tree lose
    the pages that they shared, RSS does not show it, and the tree's PSS goes first."""
    findings = series.findings
    copied = [i for i in stable if unshared(findings[i], series)]
    if copied:
        return max(copied, key=lambda i: findings[i].samples)
    most = max(findings[i].samples for i in stable)
    candidates = [i for i in stable if findings[i].role in _SPEAK] or list(stable)
    return min(
        candidates,
        key=lambda i: (
            findings[i].samples < series.policy.common.short_share * most,
            findings[i].verdict is not Verdict.WARMUP,
            _rank(findings[i], _ASKED_FIRST),
            findings[i].process == "tree",
            -findings[i].peak_value,
        ),
    )

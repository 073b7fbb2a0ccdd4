"""The findings of one recording, and the rules that hold them against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Any

from memdiag.analysis.decision.across.kept_by_names import Kept
from memdiag.analysis.decision.case import Rule
from memdiag.analysis.policy import Policy
from memdiag.values.findings import Finding
from memdiag.values.measurements import Axis, AxisKind, FillLevel, Role, Series
from memdiag.values.verdict import STABLE_OR_WARMUP, Argument, Side, Verdict

MALLOC, MALLOC_FREE = "malloc_bytes", "malloc_free_bytes"
PYTHON_BLOCKS = "python_blocks"
LARGEST_SMALL_BYTES = 512  # exact: SMALL_REQUEST_THRESHOLD
"""Python takes what is larger from malloc (Objects/obmalloc.c)."""
SMALLEST_BYTES = 16  # exact: ALIGNMENT
"""Of a block of Python's allocator (the same file)."""
IN_PART = frozenset({"tensor_bytes", "jax_array_bytes"})
"""Memory in use, but a part of it: that it does not grow says nothing about the rest."""
COUNTS = frozenset({Role.TENSORS, Role.OBJECTS, Role.PROCESSES, Role.COUNTER})
"""Roles that count things and not memory: they explain, and decide only where nothing else can."""
# Counts of tensors that are not in a subject's memory: {subject is on a device: metrics}.
ELSEWHERE = {
    True: ("tensors_cpu", "tensors_other"),
    False: ("tensors_cuda", "tensors_gpu", "tensors_other", "vram_allocations", "xpu_allocations"),
}
# Allocators that a recording names by the beginning of its columns' names.
_ALLOCATORS = frozenset({"vram", "xpu", "mps", "jax", "tensorflow"})
_OF_ALLOCATORS = frozenset(
    {Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED, Role.HOLES, Role.EVENTS, Role.TENSORS}
)

Changes = Mapping[str, Any]
"""Facts of a finding that a new verdict changes, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSet:
    """The findings of one recording. recorded: its series. kept: what the names of each process
    keep, where that was measured. fill_levels: see `Recording`."""

    findings: Sequence[Finding]
    policy: Policy
    recorded: Sequence[Series] = ()
    kept: Mapping[str, Kept] = field(default_factory=dict)
    fill_levels: Sequence[FillLevel] = ()

    @property
    def ended(self) -> frozenset[str]:
        """Processes of a tree that were gone well before the recording's end."""
        times = [(s.process, s.at_s) for s in self.recorded if s.at_s is not None and len(s.at_s)]
        if not times:
            return frozenset()
        began_s = min(float(at_s[0]) for _, at_s in times)
        end_s = max(float(at_s[-1]) for _, at_s in times)
        late_s = end_s - self.policy.common.little * (end_s - began_s)
        alive = {process for process, at_s in times if float(at_s[-1]) >= late_s}
        return frozenset(process for process, _ in times) - alive

    def same(self, finding: Finding) -> list[Finding]:
        """The findings about the same memory, itself included."""
        return [f for f in self.findings if self.is_same(finding, f)]

    def is_same(self, subject: Finding, other: Finding) -> bool:
        """Return True if two series are about the same memory: of one process, or of a tree in
        which only one process has such a series."""
        sources = {_source(subject), _source(other)} - {""}
        if len(sources) > 1:
            return False
        if subject.process == other.process:
            return True
        alike = {f.process for f in self.findings if f.metric == other.metric}
        return subject.process == "tree" and alike == {other.process}

    def is_only(self, process: str) -> bool:
        """Return True if no other process of the tree has series."""
        return {f.process for f in self.findings} <= {process, "tree"}

    @property
    def is_of_one(self) -> bool:
        """Return True if all series are of one process."""
        return len({f.process for f in self.findings} - {"", "tree"}) == 1

    def is_on_host(self, tensors: Finding) -> bool:
        """Return True for tensors of which none come and go on a device: malloc has them all."""
        return tensors.metric in IN_PART and all(
            f.verdict in STABLE_OR_WARMUP
            for f in self.findings
            if f.process == tensors.process and f.metric in ELSEWHERE[False]
        )

    def rise(self, finding: Finding, since: Finding | float) -> float:
        """How much a series rose since a position, or since another one's leak began.

        Both ends are averaged over a tenth of the way (of the readings, where those are dense at
        one end).
        """
        little = self.policy.common.little
        start = onset(since) if isinstance(since, Finding) else since
        points = [p for p in finding.trace if p[0] >= start]
        if len(points) < 2:
            return 0.0
        tenth, most = (points[-1][0] - points[0][0]) * little, max(int(len(points) * little), 1)
        early = [v for x, v in points[:most] if x <= points[0][0] + tenth]
        late = [v for x, v in points[-most:] if x >= points[-1][0] - tenth]
        return fmean(late) - fmean(early)

    def warmed_up_x(self, finding: Finding) -> float:
        """Where the first part of a run ends, which may be a warm-up."""
        way = finding.last_x - finding.first_x
        return finding.first_x + self.policy.common.warm_share * way

    def is_as_recent(self, other: Finding, finding: Finding) -> bool:
        """Return True if `other` was read until about where `finding` was; those of different axes
        cannot be told apart."""
        length = finding.last_x - finding.first_x
        lag = finding.last_x - other.last_x
        return other.axis != finding.axis or lag <= self.policy.common.slight * length

    def saw(self, other: Finding, finding: Finding) -> bool:
        """Return True if `other` was read while nearly all of the growth of `finding` took place:
        of what came later it knows nothing."""
        if self.is_as_recent(other, finding):
            return True
        later, grown = self.rise(finding, other.last_x), self.rise(finding, finding)
        return later <= self.policy.common.short_share * grown

    def pace(self, axis: Axis) -> float | None:
        """Units of an axis per second, by the series that are known on both; None if unknown."""
        if axis.kind is AxisKind.SECONDS:
            return 1.0  # exact
        known = [
            f.growth_per_s.value / f.growth_per_x.value
            for f in self.findings
            if f.axis == axis and f.growth_per_s and f.growth_per_x and f.growth_per_x.value
        ]
        return median(known) if known else None

    def units(self, axis: Axis, other: Axis) -> float | None:
        """Units of an axis in one of another; None if unknown."""
        if axis == other:
            return 1.0  # exact
        pace, others = self.pace(axis), self.pace(other)
        return pace / others if pace and others else None

    def first(self, checks: Sequence[Rule], finding: Finding) -> tuple[Argument, Changes] | None:
        """The first argument about the finding, with the facts that it changes.

        A check gets the finding and this set, and returns its argument, where it has one; with the
        facts that it changes, where there are any.
        """
        for check in checks:
            said = check.apply(self.policy, finding, self)
            if said is not None:
                argument, changes = said if isinstance(said, tuple) else (said, {})
                decisive = replace(argument, check=check.name, side=Side.ACROSS, is_decisive=True)
                return decisive, changes
        return None


def decided(finding: Finding, argument: Argument, changes: Changes) -> Finding:
    """The finding with the verdict of an argument that another series made.

    Only what does not grow has a plateau, and only an open verdict needs a longer run.
    """
    trail = (*(replace(a, is_decisive=False) for a in finding.trail), argument)
    verdict = argument.verdict
    follows = {
        "plateau": finding.plateau if verdict in STABLE_OR_WARMUP else None,
        "need_more": finding.need_more if verdict is Verdict.INCONCLUSIVE else None,
        **changes,
    }
    return replace(finding, verdict=verdict, reason=argument.reason, trail=trail, **follows)


def unshared(finding: Finding, series: SeriesSet) -> Finding | None:
    """The RSS of a tree whose processes copy pages that they shared: many more than each fork of
    Python copies to run at all, by PSS, which tells of all of them at once."""
    processes = {f.process for f in series.findings} - {"", "tree"}
    is_total = finding.process == "tree" and finding.role is Role.PROPORTIONAL
    if not is_total or series.is_of_one:
        return None
    usual = series.policy.reporting.fork_bytes * len(processes)
    least = max(usual, series.policy.common.little * finding.latest_value)
    rose = series.rise(finding, finding.first_x) > least
    return lost_by(finding, series) if rose else None


def lost_by(finding: Finding, series: SeriesSet) -> Finding | None:
    """The RSS of the same process or tree, if a USS or PSS rose and RSS did not: the growth is
    pages that are no longer shared, at most all of RSS."""
    if finding.role not in (Role.UNIQUE, Role.PROPORTIONAL):
        return None
    common = series.policy.common
    grown = series.rise(finding, finding.first_x)
    least = max(common.touched_bytes, common.stable_growth * finding.latest_value)
    if grown <= (0.0 if finding.verdict is Verdict.LEAK else least):
        return None
    for f in series.findings:
        same = f.process == finding.process or series.is_of_one
        resident = f.axis == finding.axis and f.role is Role.RESIDENT
        if same and resident and f.verdict in STABLE_OR_WARMUP:
            level = series.rise(f, finding.first_x) <= common.most * grown
            if level and f.peak_value >= finding.peak_value:
                return f
    return None


def leaking_pages(malloc: Finding, series: SeriesSet) -> Finding | None:
    """The resident pages of malloc's process, if they leak."""
    own = [f for f in series.findings if f.process == malloc.process]
    pages = [f for f in own if f.role is Role.RESIDENT and f.verdict is Verdict.LEAK]
    return pages[0] if pages else None


def beside_malloc(malloc: Finding, pages: Finding, series: SeriesSet) -> float | None:
    """What pages rose by beside what malloc holds, in use or free, since malloc's leak began. It is
    not known without malloc's free bytes: then it may be fragmentation."""
    own = [f for f in series.findings if f.process == malloc.process]
    free = next((f for f in own if f.metric == MALLOC_FREE and f.axis == malloc.axis), None)
    if free is None or pages.axis != malloc.axis:
        return None
    held = series.rise(malloc, malloc) + max(series.rise(free, malloc), 0.0)
    return series.rise(pages, malloc) - held


def onset(finding: Finding) -> float:
    """Where its growth began; its start where that is not known."""
    return finding.first_x if finding.onset_x is None else finding.onset_x.value


def speed(finding: Finding) -> float:
    """Growth per second where there is a clock, else per unit of the axis."""
    growth = finding.growth_per_s or finding.growth_per_x
    return 0.0 if growth is None else growth.value


def name(finding: Finding) -> str:
    """A series as "process metric"."""
    return f"{finding.process} {finding.metric}".strip()


def _source(finding: Finding) -> str:
    """The allocator that a value comes from, "" for the driver, the host and foreign columns."""
    name = finding.metric.partition("_")[0]
    return name if finding.role in _OF_ALLOCATORS and name in _ALLOCATORS else ""


def is_pair(first: Finding, second: Finding) -> bool:
    """Return True for two metrics of one process's allocator."""
    return first.process == second.process and _source(first) == _source(second)


def is_active(finding: Finding) -> bool:
    """Return True for blocks in use plus those that are freed and wait for another stream."""
    return finding.role is Role.DEVICE_ALLOCATED and finding.metric.endswith("_active_bytes")

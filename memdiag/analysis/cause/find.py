"""Which places in the program keep the memory that leaks, by their share of its growth.

The growth is measured by what is in use (malloc and Python's own allocator), not by resident pages,
which fragmentation makes many times larger. A place is named only if the recording leaks, if the
place still grows, and if all places together hold at least half of the growth.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memdiag.analysis.attribution.known_sizes import activation_of, as_large_as
from memdiag.analysis.cause.fixes import UNDECIDED, fix_of, fix_of_kind, kind_of
from memdiag.analysis.cause.holder_words import UNNAMED, words
from memdiag.analysis.cross_series.leak_kind import rate
from memdiag.analysis.decision.across.kept_by_names import late_rate
from memdiag.analysis.decision.across.series_set import ON_DEVICE, SeriesSet
from memdiag.analysis.policy import DEFAULT
from memdiag.probe.ring_format import BLOCK_BYTES
from memdiag.values.findings import Culprit, Finding, GrowthCause, How, KnownSize, Leaking
from memdiag.values.holders import AllocatedLine, Holder, ProcessHolders, Size, SourceLine
from memdiag.values.measurements import AxisKind, Series, Unit
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.verdict import Verdict

LEAST_EXPLAINED = 0.5
"""Of the growth, what the places must hold to be named: more than all others (heuristic)."""
_LEAST_SHARE = 0.05
# A line that was seen to get native memory is named if it is the only one that gets most of what
# grows, and not more: others get what is freed at another line. Heuristic.
_MOST_NATIVE = 1.25
# Lines that allocate what stays in use are named if they explain the growth, and not much more:
# then what they allocate does not stay, or the steps recorded were not like the others. Heuristic.
_MOST_ALLOCATED = 2.0
# What a place may hold beyond an estimate from some of its objects. Heuristic.
_MOST_MORE = 0.5
_MOST_CULPRITS = 4
# A line that gives what it makes a name, "row = ", "x, y = ", or returns it.
_NAMED = re.compile(r"[\w\s,*()]+=(?!=)|return\b")
# The call that a line makes, the outermost first.
_CALL = re.compile(r"(?<!\w)([A-Za-z_][\w.]*)\(")
# The growth of the last part of a history, beside that of all of it, that counts as still growing.
# Heuristic: a cache that fills grows ever more slowly.
_LAST_PART, _STILL = 1 / 3, 0.25


def cause(
    findings: Sequence[Finding],
    decided_by: int | None,
    leaking: Leaking | None,
    recorded: Sequence[ProcessHolders],
    series: Sequence[Series],
) -> GrowthCause | None:
    """What keeps the memory that leaks; None for other verdicts, and if nothing was looked for.

    series: those of the findings.
    """
    if decided_by is None or findings[decided_by].verdict is not Verdict.LEAK or not recorded:
        return None
    subject, processes = findings[decided_by], recorded
    if inside := [one for one in recorded if one.process == subject.process]:
        processes = inside
    found = _merged(
        [
            pair
            for one in processes
            for pair in _culprits(one, subject, series[decided_by], findings, leaking)
        ]
    )
    explained = min(1.0, sum(culprit.share for culprit, _ in found))
    named = [pair for pair in found if pair[0].share >= _LEAST_SHARE][:_MOST_CULPRITS]
    by_process = (
        _allocating(one, subject, series[decided_by], findings, leaking) for one in processes
    )
    allocating = next((one for one in by_process if one is not None), None)
    if explained < LEAST_EXPLAINED or not named:
        if allocating is not None:
            return allocating
        getting = [
            culprit
            for one in processes
            for culprit in _getting(one, subject, series[decided_by], findings)
        ]
        of_line = _of_one_line(getting, explained, findings, leaking)
        unread = () if of_line.culprits else [one for each in processes for one in each.unread]
        return replace(of_line, unread=tuple(dict.fromkeys(unread)))
    first = named[0][1]
    return GrowthCause(
        kind=kind_of(first, leaking),
        share_explained=explained,
        culprits=tuple(_with_line(culprit, allocating) for culprit, _ in named),
        fix=fix_of(first),
    )


def _of_one_line(
    getting: Sequence[Culprit],
    explained: float,
    findings: Sequence[Finding],
    leaking: Leaking | None,
) -> GrowthCause:
    """The cause if a single line gets the memory that no name leads to, else an unknown one."""
    kind = None if leaking is None else leaking.kind
    only = getting[0] if len(getting) == 1 else None
    if only is not None:
        explained = min(1.0, only.share)
        kind = _kind_of_malloc(kind, only.process, findings)
    return GrowthCause(
        kind=kind,
        share_explained=explained,
        culprits=() if only is None else (only,),
        fix=fix_of_kind(kind),
    )


def _with_line(culprit: Culprit, allocating: GrowthCause | None) -> Culprit:
    """A culprit without a line with the one that allocates most of what grows."""
    if culprit.line is not None or allocating is None or not allocating.culprits:
        return culprit
    line = allocating.culprits[0]
    return replace(
        culprit,
        file=line.file,
        line=line.line,
        code=line.code,
        function=line.function,
        how=How.ALLOCATED,
    )


def leaking_by_names(metrics: Leaking | None, found: GrowthCause | None) -> Leaking | None:
    """The kind of memory that leaks: as the metrics tell it, or, where they tell no share, or only
    that it is memory of malloc, the kind of the place that holds most.
    """
    if metrics is None or (metrics.share is not None and metrics.kind is not MemoryKind.NATIVE):
        return metrics
    if found is None or not found.culprits or found.kind is None or found.kind is metrics.kind:
        return metrics
    return Leaking(kind=found.kind, share=None)


def watching(verdict: Verdict, recorded: Sequence[ProcessHolders]) -> tuple[str, ...]:
    """Notes of how long lines were watched, which takes time, in a recording that leaks."""
    return tuple(
        f"{one.process or one.pid}: lines were watched for {one.watched_steps} steps "
        f"({one.watched_s:.1f} s)"
        for one in recorded
        if verdict is Verdict.LEAK and one.watched_steps
    )


def _merged(found: Sequence[tuple[Culprit, Holder]]) -> list[tuple[Culprit, Holder]]:
    """One culprit for all places that the same line adds to, such as a hook of each layer; the
    largest share first.
    """
    alike: dict[object, list[tuple[Culprit, Holder]]] = {}
    for culprit, holder in sorted(found, key=lambda pair: -pair[0].share):
        place = (culprit.file, culprit.line) if culprit.line else holder.path[-1]
        alike.setdefault((culprit.process, place), []).append((culprit, holder))
    merged = [(_together([culprit for culprit, _ in same]), same[0][1]) for same in alike.values()]
    return sorted(merged, key=lambda pair: -pair[0].share)


def _together(same: Sequence[Culprit]) -> Culprit:
    """The first of several culprits, with what all of them grow by."""
    first = same[0]
    if len(same) == 1:
        return first
    steps = [one.bytes_per_step for one in same if one.bytes_per_step is not None]
    counts = [one.count_per_step for one in same if one.count_per_step is not None]
    return replace(
        first,
        holder=f"{first.holder} and {len(same) - 1} more",
        bytes_per_step=sum(steps) if steps else None,
        bytes_per_s=sum(one.bytes_per_s for one in same),
        count_per_step=sum(counts) if counts else None,
        share=min(1.0, sum(one.share for one in same)),
    )


def _culprits(
    one: ProcessHolders,
    subject: Finding,
    series: Series,
    findings: Sequence[Finding],
    leaking: Leaking | None,
) -> list[tuple[Culprit, Holder]]:
    """The places of a process that still grow, each with its share of the process's growth."""
    grown = [
        (holder, per_x)
        for holder in one.holders
        if (points := _placed(holder.sizes, series))
        and _still_grows(points)
        and (per_x := late_rate(points)) is not None
        and per_x > 0
    ]
    small = max((holder.small_bytes for holder, _ in grown), default=0.0) or BLOCK_BYTES
    is_mapped = leaking is not None and leaking.kind is MemoryKind.MAPPED
    whole = _growth(one.process, subject, findings, small, is_mapped=is_mapped)
    if whole is None or whole <= 0:
        return []
    is_on_device = subject.role in ON_DEVICE
    is_in_use = not is_on_device and not is_mapped and _reads_malloc(one.process, findings)
    known, rest = _without_twice(grown, whole, is_on_device=is_on_device)
    if is_in_use:
        known, rest = _fitted(known, whole)
    hiding = sum(per_x * holder.hiding_per_unit for holder, per_x, _ in known)
    hidden = rest / hiding if is_in_use and hiding > 0 else 0.0
    out = []
    for holder, per_x, each in known:
        is_hidden = holder.hiding_per_unit * hidden > each
        whole_each = each + holder.hiding_per_unit * hidden
        share = min(1.0, per_x * whole_each / whole)
        by_step = per_x if subject.axis.kind is AxisKind.STEP else None
        culprit = _culprit(holder, one.process, by_step, whole_each, share)
        if holder.unit == "items" and (what := _size_of_item(holder, whole_each, one)):
            text = f"{culprit.holder}, each item as large as {what}"
            culprit = replace(culprit, holder=text)
        if is_hidden:
            what = f"{holder.hiding_type} objects" if holder.hiding_type else "objects in C"
            text = f"{culprit.holder}, with native memory of {what}"
            culprit = replace(culprit, holder=text)
        kind = MemoryKind.NATIVE if is_hidden else holder.kind
        out.append((culprit, replace(holder, kind=kind)))
    return out


def _without_twice(
    grown: Sequence[tuple[Holder, float]], whole: float, *, is_on_device: bool
) -> tuple[list[tuple[Holder, float, float]], float]:
    """The places with their growth and what one more of each keeps, and the growth that is left.

    What was found without a name may have got one since, and would count twice: it gets what the
    places with names leave.
    """
    found = []
    rest = whole
    for holder, per_x in sorted(grown, key=lambda one: one[0].path[0].kind in UNNAMED):
        each = holder.device_bytes_per_unit if is_on_device else holder.bytes_per_unit
        if holder.path[0].kind in UNNAMED:
            each = min(each, rest / per_x)
        rest = max(0.0, rest - per_x * each)
        if each > 0:
            found.append((holder, per_x, each))
    return found, rest


def _fitted(
    known: Sequence[tuple[Holder, float, float]], whole: float
) -> tuple[list[tuple[Holder, float, float]], float]:
    """The places, which hold no more than what has grown, and the growth that is left. Those whose
    sizes are estimated from some of many objects hold up to half more, if so much is left.
    """
    held = sum(per_x * each for _, per_x, each in known)
    estimated = sum(per_x * each for holder, per_x, each in known if holder.is_estimated)
    rest = max(0.0, whole - held)
    more = 1.0 + rest / estimated if 0 < rest <= _MOST_MORE * estimated else 1.0
    less = min(1.0, whole / held) if held else 1.0
    found = [
        (holder, per_x, each * less * (more if holder.is_estimated else 1.0))
        for holder, per_x, each in known
    ]
    return found, rest if more == 1.0 else 0.0


def _size_of_item(holder: Holder, each: float, one: ProcessHolders) -> str:
    """What each item is as large as, "" if that is not known."""
    what = as_large_as(each, one.model_bytes, one.batch_bytes)
    if what is not None:
        return _SIZES[what]
    classes = activation_of(each, one.activations) if holder.kind is MemoryKind.TENSORS else ()
    return f"an activation: the output of {' or '.join(classes)}" if classes else ""


def _culprit(
    holder: Holder, process: str, by_step: float | None, each: float, share: float
) -> Culprit:
    """by_step: what it grows by per step of the axis, None if that has no steps."""
    per_s = late_rate([(one.at_s, one.size) for one in holder.sizes]) or 0.0
    steps = [(float(one.step), one.size) for one in holder.sizes if one.step is not None]
    per_step = late_rate(steps) if len(steps) == len(holder.sizes) else by_step
    line = holder.lines[0] if holder.lines else None
    counts = per_step is not None and holder.unit != "bytes"
    return Culprit(
        file=None if line is None else line.file,
        line=None if line is None else line.line,
        code=None if line is None else line.code or None,
        function=None if line is None else line.function or None,
        holder=words(holder),
        process=process,
        bytes_per_step=None if per_step is None else per_step * each,
        bytes_per_s=per_s * each,
        count_per_step=per_step if counts else None,
        share=share,
        since_step=_since_step(holder.sizes, per_step, is_count=holder.unit == "items"),
        how=How.NAME if line is None else How.WATCHED if line.hits else How.SOURCE,
    )


def _getting(
    one: ProcessHolders, subject: Finding, series: Series, findings: Sequence[Finding]
) -> list[Culprit]:
    """The lines that were seen to get most of the native memory that grows.

    If all lines get more than that, some of it is freed again: then not those that give it a name,
    as what has a name is known not to grow.
    """
    whole = _growth(one.process, subject, findings, BLOCK_BYTES)
    if subject.role in ON_DEVICE or subject.axis.kind is not AxisKind.STEP or not whole:
        return []
    is_freed = sum(native.bytes_per_step for native in one.native) > _MOST_NATIVE * whole
    return [
        _allocated(native.line, native.bytes_per_step, whole, one, series, _native(native.line))
        for native in one.native
        if LEAST_EXPLAINED <= native.bytes_per_step / whole <= _MOST_NATIVE
        and not (is_freed and _NAMED.match(native.line.code))
    ]


def _native(line: SourceLine) -> str:
    call = _CALL.search(line.code)
    return f"native memory from `{call[1]}()`" if call else "native memory"


def _kept(what: str, line: SourceLine) -> str:
    """Who holds what a line gets: if no name is known, probably what it calls a method of."""
    if not line.receiver:
        return f"{what} held by no name that was found"
    function = f" in {line.function}()" if line.function else ""
    return f"{what}, probably held by `{line.receiver}`{function}"


def _kind_of_malloc(
    kind: MemoryKind | None, process: str, findings: Sequence[Finding]
) -> MemoryKind | None:
    """The kind of what one line gets from malloc and no name leads to. If it were tensors, their
    number would grow, since a tensor that grows has a name. Without torch, none are counted.
    """
    counts = [f.verdict for f in findings if f.process == process and f.metric == "tensors"]
    is_native = kind is MemoryKind.NATIVE_OR_TENSORS and set(counts) <= {Verdict.STABLE}
    return MemoryKind.NATIVE if is_native else kind


def _allocating(
    one: ProcessHolders,
    subject: Finding,
    series: Series,
    findings: Sequence[Finding],
    leaking: Leaking | None,
) -> GrowthCause | None:
    """The lines that were recorded to allocate what stays in use; None if they do not explain it.

    leaking: what the metrics show.
    """
    is_on_device = subject.role in ON_DEVICE
    whole = _growth(one.process, subject, findings, BLOCK_BYTES)
    if subject.axis.kind is not AxisKind.STEP or not whole:
        return None
    by_line: dict[tuple[str, int], list[AllocatedLine]] = {}
    for each in one.allocated:
        if each.is_device is is_on_device:
            by_line.setdefault((each.line.file, each.line.line), []).append(each)
    explained = sum(each.bytes_per_step for same in by_line.values() for each in same) / whole
    if not LEAST_EXPLAINED <= explained <= _MOST_ALLOCATED:
        return None
    first = max((each for same in by_line.values() for each in same), key=_size)
    kind = first.kind if leaking is None or leaking.kind in UNDECIDED else leaking.kind
    what = _UNNAMED.get(kind, "memory")
    culprits = [
        _allocated(max(same, key=_size).line, sum(map(_size, same)), whole, one, series, what)
        for same in by_line.values()
    ]
    named = sorted((c for c in culprits if c.share >= _LEAST_SHARE), key=lambda c: -c.share)
    return GrowthCause(
        kind=kind,
        share_explained=min(1.0, explained),
        culprits=tuple(named[:_MOST_CULPRITS]),
        fix=fix_of_kind(kind),
    )


_SIZES = {
    KnownSize.MODEL: "the model",
    KnownSize.OPTIMIZER_STATE: "the state of an Adam optimizer",
    KnownSize.TRAINING_STATE: "model, gradients and Adam state together",
    KnownSize.BATCH: "a batch of data",
}
_UNNAMED = {
    MemoryKind.GRAPH: "autograd graphs",
    MemoryKind.CYCLES: "reference cycles",
    MemoryKind.TENSORS: "tensors",
}


def _size(line: AllocatedLine) -> float:
    return line.bytes_per_step


def _allocated(
    line: SourceLine, per_step: float, whole: float, one: ProcessHolders, series: Series, what: str
) -> Culprit:
    """A line that gets `per_step` bytes, of a growth of `whole`."""
    (first_x, _), (last_x, _) = (
        _placed([Size(at_s=at_s, step=None, size=0.0) for at_s in (0.0, one.last_s)], series)
        or [(0.0, 0.0)] * 2
    )
    return Culprit(
        file=line.file,
        line=line.line,
        code=line.code or None,
        function=line.function or None,
        holder=_kept(what, line),
        process=one.process,
        bytes_per_step=per_step,
        bytes_per_s=per_step * (last_x - first_x) / one.last_s,
        count_per_step=None,
        share=min(1.0, per_step / whole),
        since_step=None,
        how=How.ALLOCATED,
    )


def _growth(
    process: str,
    subject: Finding,
    findings: Sequence[Finding],
    small: float,
    *,
    is_mapped: bool = False,
) -> float | None:
    """Growth of what is in use in a process, per unit of the subject's axis.

    is_mapped: neither malloc nor Python has mapped it: the growth of its pages.
    """
    series = SeriesSet(findings=findings, policy=DEFAULT)
    if subject.role in ON_DEVICE or is_mapped:
        return _growth_of(subject, subject, series)
    rates = {f.metric: _growth_of(f, subject, series) for f in findings if f.process == process}
    malloc, blocks = rates.get("malloc_bytes"), rates.get("python_blocks")
    if malloc is not None:
        return max(malloc, 0.0) + max(blocks or 0.0, 0.0) * small
    return _growth_of(subject, subject, series) if subject.unit is Unit.BYTES else None


def _reads_malloc(process: str, findings: Sequence[Finding]) -> bool:
    return any(f.process == process and f.metric == "malloc_bytes" for f in findings)


def _growth_of(finding: Finding, subject: Finding, series: SeriesSet) -> float | None:
    """Growth per unit of the subject's axis: of the last regime if its trend is certain, else since
    the subject began to grow; None where the axes have no common clock."""
    units = series.units(finding.axis, subject.axis)
    is_certain = finding.verdict is not Verdict.INCONCLUSIVE
    if units is None or finding.growth_per_x is None or not is_certain:
        return rate(finding, subject, series)
    return finding.growth_per_x.value * units


def _placed(sizes: Sequence[Size], series: Series) -> list[tuple[float, float]]:
    """The sizes on the axis of a series: (position, size)."""
    if series.at_s is None:
        return []
    known = np.isfinite(series.x) & np.isfinite(series.at_s)
    at_s, x = series.at_s[known], series.x[known]
    if not len(x):
        return []
    order = np.argsort(at_s, kind="stable")
    placed = np.interp([one.at_s for one in sizes], at_s[order], x[order]).tolist()
    return [(at, one.size) for at, one in zip(placed, sizes, strict=True)]


def _still_grows(points: Sequence[tuple[float, float]]) -> bool:
    """Return True if the last part of a history grows about as much as all of it.

    points: (position on the axis of the series, size): what comes after the last step counts for
    nothing.
    """
    (first, smallest), (last, largest) = points[0], points[-1]
    before = [one for one in points if one[0] <= last - _LAST_PART * (last - first)]
    if not before or last <= first:
        return False
    at, size = before[-1]
    return (largest - size) / (last - at) >= _STILL * (largest - smallest) / (last - first)


def _since_step(sizes: Sequence[Size], per_step: float | None, *, is_count: bool) -> int | None:
    """The last step before it grew; if it grew already when it was first seen, the step at which it
    was empty.
    """
    if sizes[0].step is None or per_step is None or per_step <= 0:
        return None
    before = [one.step for one in sizes if one.size <= sizes[0].size and one.step is not None]
    first = before[-1]
    return max(0, round(first - sizes[0].size / per_step)) if is_count else first

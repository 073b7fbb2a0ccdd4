"""Which places in the program keep the memory that leaks, by their share of its growth.

The growth of a process is measured by what is in use (malloc and Python's own allocator), not by
resident pages, which fragmentation makes many times larger; shares are of the growth of the job, of
which each process has a part. A place is named only if the recording leaks, if the place still
grows, and if all places together hold at least half of the growth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memdiag.analysis.attribution.known_sizes import activation_of, as_large_as
from memdiag.analysis.cause.fixes import UNDECIDED, fix_of, fix_of_kind, kind_of
from memdiag.analysis.cause.holder_words import words
from memdiag.analysis.cause.optimizer_state import with_state
from memdiag.analysis.cause.size_history import Points, on_axis, placed, since, still_grows
from memdiag.analysis.cross_series.leak_kind import rate
from memdiag.analysis.decision.across.kept_by_names import late_rate
from memdiag.analysis.decision.across.series_set import SeriesSet
from memdiag.analysis.policy import DEFAULT
from memdiag.probe.ring_format import BLOCK_BYTES
from memdiag.values.findings import (
    Culprit,
    Finding,
    Fix,
    GrowthCause,
    How,
    KnownSize,
    Leaking,
    WholeGrowth,
)
from memdiag.values.holders import (
    UNREACHED,
    AllocatedLine,
    Holder,
    ProcessHolders,
    Size,
    SourceLine,
)
from memdiag.values.measurements import ON_DEVICE, AxisKind, Series, Unit
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
# The classes of memoryviews in Cython.
_VIEWS = ("memoryview", "_memoryviewslice")
# Of the growth, what the places must leave for a line that gets native memory to be named beside
# them. Heuristic: what is said to be unexplained.
_LEAST_REST = 0.1
# A line that gives what it makes a name, "row = ", "x, y = ", or returns it.
_NAMED = re.compile(r"[\w\s,*()]+=(?!=)|return\b")
# The call that a line makes, the outermost first.
_CALL = re.compile(r"(?<!\w)([A-Za-z_][\w.]*)\(")
# The head of a function that is in one line.
_DEFINITION = re.compile(r"(?:async )?def .*?\)\s*(?:->[^:]+)?:")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A culprit, and what follows from what holds the memory.

    place: the same for what is one culprit. is_unnamed: no name leads to it.
    """

    culprit: Culprit
    place: object
    kind: MemoryKind | None
    fix: Fix | None
    is_unnamed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leak:
    """The leak that a cause is looked for. subject, series: what decides. leaking: what the metrics
    show of its kind. parts: the part of its growth that each process has.
    """

    findings: Sequence[Finding]
    subject: Finding
    series: Series
    leaking: Leaking | None
    parts: Mapping[str, float]

    @property
    def is_by_step(self) -> bool:
        return self.subject.axis.kind is AxisKind.STEP

    @property
    def is_on_device(self) -> bool:
        return self.subject.role in ON_DEVICE

    @property
    def is_mapped(self) -> bool:
        return self.leaking is not None and self.leaking.kind is MemoryKind.MAPPED


def cause(
    findings: Sequence[Finding],
    decided_by: int | None,
    leaking: Leaking | None,
    recorded: Sequence[ProcessHolders],
    series: Sequence[Series],
    growth: WholeGrowth | None = None,
) -> GrowthCause | None:
    """What keeps the memory that leaks; None for other verdicts, and if nothing was looked for.

    series: those of the findings. growth: of the job.
    """
    if decided_by is None or findings[decided_by].verdict is not Verdict.LEAK or not recorded:
        return None
    leak = _Leak(
        findings=findings,
        subject=findings[decided_by],
        series=on_axis(series[decided_by], findings[decided_by].axis),
        leaking=leaking,
        parts=_parts(findings[decided_by], growth, recorded),
    )
    found = _merged(
        [
            _of_job(one, leak)
            for process in _latest(recorded)
            if process.process in leak.parts
            for one in _of_process(process, leak)
        ]
    )
    explained = min(1.0, sum(one.culprit.share for one in found))
    named = [one for one in found if one.culprit.share >= _LEAST_SHARE][:_MOST_CULPRITS]
    if explained < LEAST_EXPLAINED or not named:
        kind = None if leaking is None else leaking.kind
        unread = (one for process in recorded for one in process.unread)
        return GrowthCause(
            kind=kind,
            share_explained=explained,
            culprits=(),
            fix=fix_of_kind(kind),
            unread=tuple(dict.fromkeys(unread)),
        )
    return GrowthCause(
        kind=named[0].kind,
        share_explained=explained,
        culprits=tuple(one.culprit for one in named),
        fix=named[0].fix,
    )


def _latest(recorded: Sequence[ProcessHolders]) -> list[ProcessHolders]:
    """One of each label, such as those of workers that are started anew at each epoch: the last one
    in which something was found.
    """
    found: dict[str, ProcessHolders] = {}
    for one in sorted(recorded, key=lambda one: (bool(one.holders or one.native), one.last_s)):
        found[one.process] = one
    return list(found.values())


def _parts(
    subject: Finding, growth: WholeGrowth | None, recorded: Sequence[ProcessHolders]
) -> Mapping[str, float]:
    """The part of the job's growth that each process has. If it is not known, all of it is in the
    process that decides, or in any of them.
    """
    parts: dict[str, float] = {}
    for part in () if growth is None else growth.parts:
        parts[part.process] = parts.get(part.process, 0.0) + part.share
    processes = [one.process for one in recorded]
    if any(process in parts for process in processes):
        return parts
    return dict.fromkeys([subject.process] if subject.process in processes else processes, 1.0)


def _of_job(one: _Found, leak: _Leak) -> _Found:
    """With its share of the growth of the job, of which it has that of its process."""
    share = min(1.0, one.culprit.share * leak.parts[one.culprit.process])
    return replace(one, culprit=replace(one.culprit, share=share))


def _of_process(one: ProcessHolders, leak: _Leak) -> list[_Found]:
    """What keeps the growth of a process: places, lines that allocate what stays in use, lines that
    get native memory. Shares are of the growth of the process.
    """
    places, rest = _places(one, leak)
    allocating = _allocating(one, leak)
    if _share(places) >= LEAST_EXPLAINED:
        return [_with_line(each, allocating) for each in places] + _beside(one, rest, leak)
    if allocating:
        return allocating
    both = places + _beside(one, rest, leak)
    if _share(both) >= LEAST_EXPLAINED:
        return both
    return _single(_getting(one, _whole(one, leak, BLOCK_BYTES), leak)) or places


def _share(found: Sequence[_Found]) -> float:
    return sum(one.culprit.share for one in found)


def _single(found: list[_Found]) -> list[_Found]:
    """The only one; of several it is not known which keeps what it gets."""
    return found if len(found) == 1 else []


def _with_line(found: _Found, allocating: Sequence[_Found]) -> _Found:
    """A culprit without a line with the one that allocates most of what grows; one without a name
    too, of which the line is a guess, if that line allocates half of it or more.
    """
    if not allocating:
        return found
    line = allocating[0].culprit
    is_guess = found.is_unnamed and line.share >= LEAST_EXPLAINED
    if found.culprit.line is not None and not is_guess:
        return found
    culprit = replace(
        found.culprit,
        file=line.file,
        line=line.line,
        code=line.code,
        function=line.function,
        how=How.ALLOCATED,
    )
    return replace(found, culprit=culprit, place=allocating[0].place)


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
        f"{one.process or one.pid}: lines were watched for {one.watched_steps} "
        f"{'step' if one.watched_steps == 1 else 'steps'} ({one.watched_s:.1f} s)"
        for one in recorded
        if verdict is Verdict.LEAK and one.watched_steps
    )


def _merged(found: Sequence[_Found]) -> list[_Found]:
    """One culprit for all places that the same line adds to, such as a hook of each layer, and for
    a line in several processes; the largest share first.
    """
    alike: dict[object, list[_Found]] = {}
    for one in sorted(found, key=_by_share):
        alike.setdefault(one.place, []).append(one)
    return sorted(map(_together, alike.values()), key=_by_share)


def _by_share(one: _Found) -> float:
    return -one.culprit.share


def _together(same: Sequence[_Found]) -> _Found:
    """The first of several culprits, with what all of them grow by."""
    culprits = [one.culprit for one in same]
    first = culprits[0]
    if len(same) == 1:
        return same[0]
    processes = Counter(one.process for one in culprits)
    more = max(processes.values()) - 1
    since = [one.since_step for one in culprits if one.since_step is not None]
    together = replace(
        first,
        holder=f"{first.holder} and {more} more" if more else first.holder,
        processes=tuple(processes),
        bytes_per_step=_sum(one.bytes_per_step for one in culprits),
        bytes_per_s=sum(one.bytes_per_s for one in culprits),
        count_per_step=_sum(one.count_per_step for one in culprits),
        share=min(1.0, sum(one.share for one in culprits)),
        since_step=min(since, default=None),
        is_certain=all(one.is_certain for one in culprits),
    )
    return replace(same[0], culprit=together)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return sum(known) if known else None


def _places(one: ProcessHolders, leak: _Leak) -> tuple[list[_Found], float]:
    """The places of a process that still grow, each with its share of the growth of the process,
    and the growth that is left.
    """
    grown = [
        (holder, per_x)
        for holder in one.holders
        if (points := placed(holder.sizes, leak.series))
        and still_grows(points)
        and (per_x := late_rate(points)) is not None
        and per_x > 0
    ]
    grown = with_state(grown)
    if any(holder.hiding_per_unit for holder, _ in grown):
        grown = [(holder, per_x) for holder, per_x in grown if not _is_views(holder)]
    small = max((holder.small_bytes for holder, _ in grown), default=0.0) or BLOCK_BYTES
    whole = _whole(one, leak, small)
    if whole <= 0:
        return [], 0.0
    is_in_use = _is_in_use(one, leak)
    known, rest = _without_twice(grown, whole, is_on_device=leak.is_on_device)
    if is_in_use:
        known, rest = _fitted(known, whole)
    hides = is_in_use or (leak.is_mapped and not leak.is_on_device)
    hidden, is_measured = _hidden(one, known, rest, leak) if hides else ([0.0] * len(known), True)
    found = []
    for (holder, per_x, each), more in zip(known, hidden, strict=True):
        rest = max(0.0, rest - per_x * more)
        found.append(_of_place(holder, per_x, each, more, whole, one, leak))
        if more > each and not is_measured:
            culprit = replace(found[-1].culprit, is_certain=False)
            found[-1] = replace(found[-1], culprit=culprit)
    return found, rest


def _is_views(holder: Holder) -> bool:
    """Return True for memoryviews that no name leads to: objects in C refer to them."""
    return holder.path[-1].kind == UNREACHED and holder.path[-1].name in _VIEWS


def _is_in_use(one: ProcessHolders, leak: _Leak) -> bool:
    """Return True if its growth is that of what is in use."""
    is_read = any(f.process == one.process and f.metric == "malloc_bytes" for f in leak.findings)
    return is_read and not leak.is_on_device and not leak.is_mapped


def _of_place(
    holder: Holder,
    per_x: float,
    each: float,
    hidden: float,
    whole: float,
    one: ProcessHolders,
    leak: _Leak,
) -> _Found:
    """A place of which one more unit keeps `each` bytes, and `hidden` more in objects in C."""
    culprit = _culprit(holder, one.process, per_x, each + hidden, whole, leak)
    if holder.unit == "items" and (what := _size_of_item(holder, each + hidden, one)):
        culprit = replace(culprit, holder=f"{culprit.holder}, each item as large as {what}")
    if hidden > each:
        what = f"{holder.hiding_type} objects" if holder.hiding_type else "objects in C"
        culprit = replace(culprit, holder=f"{culprit.holder}, with native memory of {what}")
        holder = replace(holder, kind=MemoryKind.NATIVE)
    return _Found(
        culprit=culprit,
        place=(culprit.file, culprit.line) if culprit.line else holder.path[-1],
        kind=kind_of(holder, leak.leaking),
        fix=fix_of(holder, leak.subject.phases),
        is_unnamed=holder.path[0].kind == UNREACHED,
    )


def _hidden(
    one: ProcessHolders, known: Sequence[_Known], rest: float, leak: _Leak
) -> tuple[list[float], bool]:
    """What a unit of each place keeps in objects in C that do not say how much memory they have,
    and whether that was measured.

    It is not more than what the lines that make these objects were seen to get. If what lines get
    was not measured, or explains little of the growth that is left, each object has the same of
    that.
    """
    got = {(each.line.file, each.line.line): each.bytes_per_step for each in one.native}
    if leak.is_by_step and sum(got.values()) >= LEAST_EXPLAINED * rest:
        made = [
            sum(got.get(line, 0.0) for line in _made_at(holder)) if holder.hiding_per_unit else 0.0
            for holder, _, _ in known
        ]
        part = min(1.0, rest / sum(made)) if sum(made) else 0.0
        pairs = zip(known, made, strict=True)
        return [part * size / per_x for (_, per_x, _), size in pairs], True
    objects = sum(per_x * holder.hiding_per_unit for holder, per_x, _ in known)
    each = rest / objects if objects else 0.0
    return [holder.hiding_per_unit * each for holder, _, _ in known], False


def _made_at(holder: Holder) -> set[tuple[str, int]]:
    """The lines that add to a place and make what it holds."""
    return {(line.file, line.line) for line in (*holder.lines[:1], *holder.makers)}


_Known = tuple[Holder, float, float]
"""A place, its growth per unit of the axis, and the bytes that one more of it keeps."""


def _without_twice(
    grown: Sequence[tuple[Holder, float]], whole: float, *, is_on_device: bool
) -> tuple[list[_Known], float]:
    """The places with their growth and what one more of each keeps, and the growth that is left.

    What was found without a name may have got one since, and would count twice: it gets what the
    places with names leave.
    """
    found = []
    rest = whole
    for holder, per_x in sorted(grown, key=lambda one: one[0].is_of_class):
        each = holder.device_bytes_per_unit if is_on_device else holder.host_bytes_per_unit
        if holder.is_of_class:
            each = min(each, rest / per_x)
        rest = max(0.0, rest - per_x * each)
        if each > 0:
            found.append((holder, per_x, each))
    return found, rest


def _fitted(known: Sequence[_Known], whole: float) -> tuple[list[_Known], float]:
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
    holder: Holder, process: str, per_x: float, each: float, whole: float, leak: _Leak
) -> Culprit:
    """per_x: what it grows by per unit of the axis. each: bytes of one more. whole: all growth."""
    per_s = late_rate([(one.at_s, one.size) for one in holder.sizes]) or 0.0
    points: Points = [(one.step, one.size) for one in holder.sizes if one.step is not None]
    if len(points) < len(holder.sizes):  # the job has steps that are known otherwise
        points = placed(holder.sizes, leak.series, only_within=True) if leak.is_by_step else ()
        per_step = per_x if leak.is_by_step else None
    else:
        per_step = late_rate(points)
    began = since(points, per_step or 0.0, is_count=holder.unit != "bytes")
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
        share=min(1.0, per_x * each / whole),
        since_step=None if began is None else round(began),
        how=How.NAME if line is None else How.WATCHED if line.hits else How.SOURCE,
    )


def _beside(one: ProcessHolders, rest: float, leak: _Leak) -> list[_Found]:
    """The line that gets most of the native memory that the places leave, if that is much."""
    if rest < _LEAST_REST * _whole(one, leak, BLOCK_BYTES) or not _is_in_use(one, leak):
        return []
    known = {line for holder in one.holders for line in _made_at(holder)}
    return [found for found in _single(_getting(one, rest, leak)) if found.place not in known]


def _getting(one: ProcessHolders, of: float, leak: _Leak) -> list[_Found]:
    """The lines that were seen to get most of the native memory that grows by `of`.

    If all lines get more than what grows, some of it is freed again: then not those that give it a
    name, as what has a name is known not to grow.
    """
    whole = _whole(one, leak, BLOCK_BYTES)
    if leak.is_on_device or not leak.is_by_step or not of:
        return []
    is_freed = sum(native.bytes_per_step for native in one.native) > _MOST_NATIVE * whole
    kind = _kind_of_malloc(None if leak.leaking is None else leak.leaking.kind, one.process, leak)
    return [
        _allocated(
            native.line,
            native.bytes_per_step,
            whole,
            one,
            leak,
            _native(native.line),
            kind=kind,
            fix=fix_of_kind(kind) or (None if native.line.receiver else Fix.RELEASE),
        )
        for native in one.native
        if LEAST_EXPLAINED <= native.bytes_per_step / of <= _MOST_NATIVE
        and not (is_freed and _NAMED.match(native.line.code))
    ]


def _native(line: SourceLine) -> str:
    call = _CALL.search(_DEFINITION.sub("", line.code))
    return f"native memory from `{call[1]}()`" if call else "native memory"


def _kept(what: str, line: SourceLine) -> str:
    """Who holds what a line gets: if no name is known, probably what it calls a method of."""
    if not line.receiver:
        return f"{what} held by no name that was found"
    function = f" in {line.function}()" if line.function else ""
    return f"{what}, probably held by `{line.receiver}`{function}"


def _kind_of_malloc(kind: MemoryKind | None, process: str, leak: _Leak) -> MemoryKind | None:
    """The kind of what one line gets from malloc and no name leads to. If it were tensors, their
    number would grow, since a tensor that grows has a name. Without torch, none are counted.
    """
    counts = [f.verdict for f in leak.findings if f.process == process and f.metric == "tensors"]
    is_native = kind is MemoryKind.NATIVE_OR_TENSORS and set(counts) <= {Verdict.STABLE}
    return MemoryKind.NATIVE if is_native else kind


def _allocating(one: ProcessHolders, leak: _Leak) -> list[_Found]:
    """The lines that were recorded to allocate what stays in use, the largest first; none if they
    do not explain the growth.
    """
    whole = _whole(one, leak, BLOCK_BYTES)
    if not leak.is_by_step or not whole:
        return []
    by_line: dict[tuple[str, int], list[AllocatedLine]] = {}
    for each in one.allocated:
        if each.is_device is leak.is_on_device:
            by_line.setdefault((each.line.file, each.line.line), []).append(each)
    explained = sum(each.bytes_per_step for same in by_line.values() for each in same) / whole
    if not LEAST_EXPLAINED <= explained <= _MOST_ALLOCATED:
        return []
    # (What is freed later is in it: of all lines the same part, since nothing more is known.)
    part = min(1.0, 1.0 / explained)
    first = max((each for same in by_line.values() for each in same), key=_size)
    is_open = leak.leaking is None or leak.leaking.kind in UNDECIDED
    kind = first.kind if leak.leaking is None or is_open else leak.leaking.kind
    what, fix = _UNNAMED.get(kind, "memory"), fix_of_kind(kind)
    found = [
        _allocated(
            max(same, key=_size).line,
            part * sum(map(_size, same)),
            whole,
            one,
            leak,
            what,
            kind=kind,
            fix=fix,
        )
        for same in by_line.values()
    ]
    return sorted(found, key=_by_share)


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
    line: SourceLine,
    per_step: float,
    whole: float,
    one: ProcessHolders,
    leak: _Leak,
    what: str,
    *,
    kind: MemoryKind | None,
    fix: Fix | None,
) -> _Found:
    """A line that gets `per_step` bytes, of a growth of `whole`."""
    ends = [Size(at_s=at_s, step=None, size=0.0) for at_s in (0.0, one.last_s)]
    points = placed(ends, leak.series) or [(0.0, 0.0)]
    (first_x, _), (last_x, _) = points[0], points[-1]
    culprit = Culprit(
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
    return _Found(culprit=culprit, place=(line.file, line.line), kind=kind, fix=fix)


def _whole(one: ProcessHolders, leak: _Leak, small: float) -> float:
    """Growth of what is in use in a process, per unit of the subject's axis; 0 if it is unknown.

    small: the mean size of the small blocks. What neither malloc nor Python has mapped is the
    growth of pages.
    """
    subject, series = leak.subject, SeriesSet(findings=leak.findings, policy=DEFAULT)
    own = [f for f in leak.findings if f.process == one.process]
    rates = {f.metric: _growth_of(f, subject, series) for f in own}
    malloc, blocks = rates.get("malloc_bytes"), rates.get("python_blocks")
    if malloc is not None and not leak.is_on_device and not leak.is_mapped:
        return max(malloc, 0.0) + max(blocks or 0.0, 0.0) * small
    if subject.unit is not Unit.BYTES:
        return 0.0
    part = leak.parts[one.process] if subject.process != one.process else 1.0
    return part * (_growth_of(subject, subject, series) or 0.0)


def _growth_of(finding: Finding, subject: Finding, series: SeriesSet) -> float | None:
    """Growth per unit of the subject's axis: of the last regime if its trend is certain, else since
    the subject began to grow; None where the axes have no common clock."""
    units = series.units(finding.axis, subject.axis)
    is_certain = finding.verdict is not Verdict.INCONCLUSIVE
    if units is None or finding.growth_per_x is None or not is_certain:
        return rate(finding, subject, series)
    return finding.growth_per_x.value * units

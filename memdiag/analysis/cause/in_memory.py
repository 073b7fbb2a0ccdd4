"""What was in memory at the last census, and which places in the program have grown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdiag.analysis.cause.holder_words import expression, place, words
from memdiag.analysis.cause.size_history import still_grows
from memdiag.values.findings import CensusFinding, Finding, GrownPlace, InMemory, ObjectType
from memdiag.values.holders import (
    Census,
    Holder,
    ProcessCensuses,
    ProcessHolders,
    TensorGroup,
    TypeCount,
)
from memdiag.values.measurements import AxisKind, Cause, Recording

_MOST_PLACES = 8
# The order in which censuses are of interest.
_REASONS = ("out_of_memory", "critical", "request", "regular")


def grown(recording: Recording) -> tuple[GrownPlace, ...]:
    """The places that have grown, if memory or a signal ended the run, or if there is a census."""
    how = recording.ending
    is_killed = how is not None and (how.cause is not None or how.signal is not None)
    if not is_killed and not recording.censuses:
        return ()
    return grown_places(recording.holders)


def grown_places(recorded: Sequence[ProcessHolders]) -> tuple[GrownPlace, ...]:
    """The places that have grown: first those that still grow, the largest growth first."""
    found = [
        _grown(holder, one.process) for one in recorded for holder in one.holders if holder.sizes
    ]
    found.sort(key=lambda one: (not one.still_grows, -one.grown_bytes))
    return tuple(one for one in found if one.grown_bytes > 0)[:_MOST_PLACES]


def _grown(holder: Holder, process: str) -> GrownPlace:
    first, last = holder.sizes[0], holder.sizes[-1]
    line = holder.lines[0] if holder.lines else None
    return GrownPlace(
        holder=words(holder),
        process=process,
        size=last.size,
        unit=holder.unit,
        grown_bytes=(last.size - first.size) * holder.bytes_per_unit,
        since_step=first.step,
        file=None if line is None else line.file,
        line=None if line is None else line.line,
        code=None if line is None else line.code or None,
        function=None if line is None else line.function or None,
        still_grows=still_grows([(one.at_s, one.size) for one in holder.sizes]),
    )


def census(recording: Recording, deciding: Finding | None) -> tuple[CensusFinding, ...]:
    """The last census of each process; first those of processes that ran out of memory."""
    found = [last_census(one, deciding) for one in recording.censuses]
    if recording.ending is not None and recording.ending.cause is Cause.DEVICE_MEMORY:
        found = [replace(one, groups=_devices_first(one.groups)) for one in found]
    return tuple(sorted(found, key=lambda one: (_REASONS.index(one.why), -one.tensor_bytes)))


def last_census(taken: ProcessCensuses, deciding: Finding | None = None) -> CensusFinding:
    """The last census of a process, and the growth since memory stabilized, or since the first."""
    last = taken.censuses[-1]
    before = _before(taken.censuses[:-1], deciding)
    groups = _by_form(before.groups if before else ())
    now = _by_form(last.groups)
    types = {one.type: one for one in (before.types if before else ())}
    return CensusFinding(
        process=taken.process,
        why=last.why,
        at_s=last.at_s,
        step=last.step,
        since_step=None if before is None else before.step,
        since_s=None if before is None else before.at_s,
        tensors=last.tensors,
        tensor_bytes=last.tensor_bytes,
        groups=tuple(
            _group(one, _same(one, now, groups), has_before=before is not None)
            for one in sorted(last.groups, key=lambda one: -one.size_bytes)
        ),
        types=tuple(_type(one, types) for one in last.types),
        allocators=last.allocators,
        notes=last.notes,
    )


def _devices_first(groups: Sequence[InMemory]) -> tuple[InMemory, ...]:
    return tuple(sorted(groups, key=lambda one: one.device == "cpu"))


def _by_form(groups: Sequence[TensorGroup]) -> dict[object, list[TensorGroup]]:
    found: dict[object, list[TensorGroup]] = {}
    for one in groups:
        found.setdefault(_form(one), []).append(one)
    return found


def _same(
    one: TensorGroup,
    now: dict[object, list[TensorGroup]],
    before: dict[object, list[TensorGroup]],
) -> TensorGroup | None:
    """The group of the census before: at the same place, or the only one of its form in both, which
    may have been reached by another name.
    """
    alike = before.get(_form(one), [])
    if len(alike) == 1 == len(now[_form(one)]):
        return alike[0]
    return next((old for old in alike if _names(old) == _names(one)), None)


def _group(one: TensorGroup, old: TensorGroup | None, *, has_before: bool) -> InMemory:
    return InMemory(
        name=expression(one.path) if one.path else "",
        holder=place(one.path) if one.path else "",
        inside=one.inside,
        type=one.type,
        shape=one.shape,
        dtype=one.dtype,
        device=one.device,
        count=one.count,
        size_bytes=one.size_bytes,
        has_graph=one.has_graph,
        grown_bytes=one.size_bytes - (old.size_bytes if old else 0) if has_before else None,
    )


def _type(one: TypeCount, known: dict[str, TypeCount]) -> ObjectType:
    """known: those of the census before; without any their growth is unknown."""
    old = known.get(one.type)
    return ObjectType(
        type=one.type,
        count=one.count,
        size_bytes=one.size_bytes,
        grown_count=one.count - (old.count if old else 0) if known else None,
        grown_bytes=one.size_bytes - (old.size_bytes if old else 0) if known else None,
    )


def _form(one: TensorGroup) -> object:
    return one.type, one.shape, one.dtype, one.device, one.has_graph


def _names(one: TensorGroup) -> object:
    return tuple((name.kind, name.name) for name in one.path)


def _before(earlier: Sequence[Census], deciding: Finding | None) -> Census | None:
    """The first census since memory stabilized, else the first."""
    if not earlier:
        return None
    plateau = None if deciding is None else deciding.plateau
    if deciding is None or plateau is None:
        return earlier[0]
    is_by_step = deciding.axis.kind is AxisKind.STEP
    since_x = plateau.since_x.value
    late = (one for one in earlier if ((one.step or 0) if is_by_step else one.at_s) >= since_x)
    return next(late, earlier[0])

"""Reads the file in which the probe of a process writes the places that grow.

It comes from the target: a file that no probe writes counts as absent, and all numbers and texts
are limited.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from memdiag.capture.probelink.probe_files import (
    DAMAGED,
    LONGEST_PATH,
    count_of,
    name_of,
    read_document,
    real_of,
    step_of,
    text_of,
)
from memdiag.probe import ring_format
from memdiag.values.holders import (
    AllocatedLine,
    Holder,
    NativeLine,
    ProcessHolders,
    Size,
    SourceLine,
    UnreadFunction,
)
from memdiag.values.memory_kind import MemoryKind

_MOST_HOLDERS, _MOST_NAMES, _MOST_SIZES, _MOST_FILES, _MOST_ALIASES = 16, 64, 64, 200, 8
_MOST_LINES = 16
_MOST_ACTIVATIONS, _MOST_CLASSES, _MOST_UNREAD = 64, 3, 8
_VERSION = 1
# Kinds of recorded allocations: what they are, and if they are on a device.
_ALLOCATED = {
    "tensors": (MemoryKind.TENSORS, False),
    "native": (MemoryKind.NATIVE, False),
    "device": (MemoryKind.TENSORS, True),
}
_UNITS = frozenset(("items", "objects", "bytes"))
_When = tuple[float, int | None]  # seconds since the recording began, and the step


def read_holders(
    ring: str, *, dir_fd: int, owners: Any, pid: int, began_at_s: float
) -> tuple[ProcessHolders, tuple[str, ...]] | None:
    """The places that grow in the process of a ring, and the files of its program.

    None if there is no such file, or if it is damaged. began_at_s: when the recording began.
    """
    try:
        document = read_document(ring, ring_format.HOLDERS_SUFFIX, dir_fd=dir_fd, owners=owners)
        return _holders(document, pid, began_at_s), _files(document)
    except DAMAGED:
        return None


def _holders(document: Any, pid: int, began_at_s: float) -> ProcessHolders:
    if document["version"] != _VERSION:
        raise ValueError
    walks = {
        int(number): (real_of(at_s) - began_at_s, step_of(step))
        for number, step, at_s, *_ in document["walks"][:_MOST_SIZES]
    }
    window = document["window"]
    return ProcessHolders(
        pid=pid,
        walks=len(walks),
        last_s=max(at_s for at_s, _ in walks.values()),
        native=tuple(
            NativeLine(line=_line(*line), bytes_per_step=real_of(size))
            for *line, size in window["native"][:_MOST_LINES]
        ),
        sees_all_threads=bool(window["all_threads"]),
        watched_steps=int(window["steps"]),
        watched_s=real_of(window["lasted_s"]),
        model_bytes=count_of(document["model_bytes"]),
        batch_bytes=count_of(document["batch_bytes"]),
        activations=tuple(
            (count_of(size), tuple(text_of(name) for name in names[:_MOST_CLASSES]))
            for size, names in document["activations"][:_MOST_ACTIVATIONS]
        ),
        unread=tuple(
            UnreadFunction(function=text_of(function), calls=text_of(calls))
            for function, calls in document["unread"][:_MOST_UNREAD]
        ),
        allocated=tuple(
            _allocated(kind, _line(*line), real_of(size))
            for kind, *line, size in document["allocated"][:_MOST_LINES]
        ),
        holders=tuple(
            _holder(one, walks, began_at_s) for one in document["places"][:_MOST_HOLDERS]
        ),
    )


def _when(number: Any, walks: Mapping[int, _When]) -> _When | None:
    """When a walk was; None if that is not known. Of long runs not all walks are listed: another
    one was between its neighbors.
    """
    if number in walks:
        return walks[number]
    before = max((one for one in walks if one < number), default=None)
    after = min((one for one in walks if one > number), default=None)
    if before is None or after is None:
        return None
    part = (number - before) / (after - before)
    (first_s, first), (last_s, last) = walks[before], walks[after]
    step = None if first is None or last is None else round(first + part * (last - first))
    return first_s + part * (last_s - first_s), step


def _holder(one: Any, walks: Mapping[int, _When], began_at_s: float) -> Holder:
    sizes = tuple(
        Size(at_s=at[0], step=at[1], size=real_of(size))
        for number, size in one["sizes"][:_MOST_SIZES]
        if (at := _when(number, walks)) is not None
    )
    last_s, last_step = _when(one["last_walk"], walks) or (-math.inf, None)
    if sizes and sizes[-1].at_s < last_s:  # it has not changed since
        sizes = (*sizes, Size(at_s=last_s, step=last_step, size=sizes[-1].size))
    read = (
        Size(at_s=real_of(at_s) - began_at_s, step=step_of(step), size=real_of(size))
        for step, at_s, size in one["readings"][:_MOST_SIZES]
    )
    sizes = tuple(sorted((*sizes, *read), key=lambda size: size.at_s))
    bound = one["bound"]
    if one["unit"] not in _UNITS:
        raise ValueError
    return Holder(
        path=tuple(name_of(*names) for names in one["path"][:_MOST_NAMES]),
        unit=one["unit"],
        sizes=sizes,
        bytes_per_unit=real_of(one["bytes"]),
        device_bytes_per_unit=real_of(one["device_bytes"]),
        small_bytes=real_of(one["small_bytes"]),
        hiding_per_unit=real_of(one["hiding"]),
        hiding_type=text_of(one["hiding_type"]),
        item_type=text_of(one["type"]),
        kind=MemoryKind(one["kind"]),
        through=text_of(one["through"]),
        container=text_of(one["container"]),
        bound=bound if isinstance(bound, int) else None,
        is_chain=bool(one["is_chain"]),
        is_estimated=bool(one["is_estimated"]),
        lines=tuple(_line(*line) for line in one["watched"][:_MOST_LINES]),
        aliases=tuple(map(text_of, one["aliases"][:_MOST_ALIASES])),
    )


def _line(file: Any, line: Any, function: Any, hits: Any = 0) -> SourceLine:
    """A line that was watched. function: as Python names it."""
    names = [part for part in text_of(function).split(".") if part[:1] != "<"]
    return SourceLine(
        file=text_of(file, LONGEST_PATH),
        line=int(line),
        code="",
        function=".".join(names),
        hits=int(hits),
    )


def _allocated(kind: Any, line: SourceLine, size: float) -> AllocatedLine:
    of, is_device = _ALLOCATED[text_of(kind)]
    return AllocatedLine(line=line, bytes_per_step=size, kind=of, is_device=is_device)


def _files(document: Any) -> tuple[str, ...]:
    return tuple(text_of(file, LONGEST_PATH) for file in document["files"][:_MOST_FILES])

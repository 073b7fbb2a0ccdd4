"""Reads the file in which the probe of a process writes its censuses of memory.

It comes from the target: a file that no probe writes counts as absent, and all numbers and texts
are limited.
"""

from __future__ import annotations

import secrets
from typing import Any

from memdiag.capture.probelink.probe_files import (
    DAMAGED,
    count_of,
    leave_file,
    name_of,
    read_document,
    real_of,
    step_of,
    text_of,
)
from memdiag.probe import ring_format
from memdiag.values.holders import Census, ProcessCensuses, TensorGroup, TypeCount

_MOST_CENSUSES, _MOST_GROUPS, _MOST_TYPES, _MOST_NOTES = 16, 64, 64, 8
_MOST_NAMES, _MOST_DIMENSIONS, _MOST_READINGS = 64, 32, 64
_VERSION = 1
_REASONS = frozenset(("out_of_memory", "critical", "request", "regular"))


def read_censuses(
    ring: str, *, dir_fd: int, owners: Any, pid: int, began_at_s: float
) -> ProcessCensuses | None:
    """The censuses of the process of a ring. None if there is no such file, or if it is damaged.

    began_at_s: when the recording began.
    """
    try:
        document = read_document(ring, ring_format.CENSUS_SUFFIX, dir_fd=dir_fd, owners=owners)
        if document["version"] != _VERSION:
            return None
        taken = document["censuses"][-_MOST_CENSUSES:]
        return ProcessCensuses(pid=pid, censuses=tuple(census_of(one, began_at_s) for one in taken))
    except DAMAGED:
        return None


def read_answer(ring: str, *, dir_fd: int, owners: Any) -> str:
    """The request that the last census has answered, "" if none."""
    try:
        document = read_document(ring, ring_format.CENSUS_SUFFIX, dir_fd=dir_fd, owners=owners)
        return text_of(document["answer"])
    except DAMAGED:
        return ""


def request_census(ring: str, why: str, *, dir_fd: int) -> str:
    """Ask the process of a ring for a census. Returns what `read_answer` returns once it is taken.

    why: "critical", "request" or `ring_format.WALK_OFTEN` (which is no census), or several of them
    joined by "+".
    """
    name = ring.removesuffix(ring_format.SUFFIX) + ring_format.REQUEST_SUFFIX
    token = secrets.token_hex(8)
    leave_file(name, f"{why} {token}", dir_fd=dir_fd)
    return token


def census_of(one: Any, began_at_s: float) -> Census:
    """One census, as the probe describes it. Raises an error of `DAMAGED`."""
    if one["why"] not in _REASONS:
        raise ValueError
    tensors, tensor_bytes = one["tensors"]
    return Census(
        why=one["why"],
        at_s=real_of(one["at_s"]) - began_at_s,
        step=step_of(one["step"]),
        took_s=real_of(one["took_s"]),
        tensors=count_of(tensors),
        tensor_bytes=count_of(tensor_bytes),
        groups=tuple(map(_group, one["groups"][:_MOST_GROUPS])),
        types=tuple(map(_type, one["types"][:_MOST_TYPES])),
        allocators=dict(list(_allocators(one["allocators"]))[:_MOST_READINGS]),
        notes=tuple(map(text_of, one["notes"][:_MOST_NOTES])),
    )


def _group(one: Any) -> TensorGroup:
    return TensorGroup(
        path=tuple(name_of(*names) for names in one["path"][:_MOST_NAMES]),
        type=text_of(one["type"]),
        shape=tuple(map(count_of, one["shape"][:_MOST_DIMENSIONS])),
        dtype=text_of(one["dtype"]),
        device=text_of(one["device"]),
        count=count_of(one["count"]),
        size_bytes=count_of(one["bytes"]),
        has_graph=bool(one["graph"]),
        inside=text_of(one["inside"]),
    )


def _type(one: Any) -> TypeCount:
    name, count, size_bytes = one
    return TypeCount(type=text_of(name), count=count_of(count), size_bytes=count_of(size_bytes))


def _allocators(found: Any) -> Any:
    for name, readings in found.items():
        if name in ring_format.ALLOCATORS:
            for reading, value in readings.items():
                if reading in ring_format.ALLOCATOR_READINGS:
                    yield f"{name}_{reading}", count_of(value)

"""Reads the file in which the probe of a process writes what came back when it freed memory.

It comes from the target: a file that no probe writes counts as absent, and all numbers are limited.
"""

from __future__ import annotations

from typing import Any

from memdiag.capture.probelink.probe_files import (
    DAMAGED,
    count_of,
    read_document,
    real_of,
    step_of,
)
from memdiag.probe import ring_format
from memdiag.values.holders import Intervention, ProcessInterventions

_MOST = 64
_VERSION = 1
_ACTIONS = frozenset(("gc_collect", "empty_cache", "malloc_trim"))
_METRICS = frozenset(
    [
        *ring_format.READINGS,
        *(
            f"{a}_{reading}"
            for a in ring_format.ALLOCATORS
            for reading in ("allocated_bytes", "reserved_bytes")
        ),
    ]
)


def read_interventions(
    ring: str, *, dir_fd: int, owners: Any, pid: int, began_at_s: float
) -> ProcessInterventions | None:
    """The interventions in the process of a ring. None if there is no such file, or if it is
    damaged. began_at_s: when the recording began.
    """
    try:
        suffix = ring_format.INTERVENTIONS_SUFFIX
        document = read_document(ring, suffix, dir_fd=dir_fd, owners=owners)
        if document["version"] != _VERSION:
            return None
        return ProcessInterventions(
            pid=pid,
            began_s=real_of(document["began_s"]) - began_at_s,
            done=tuple(_intervention(one, began_at_s) for one in document["done"][:_MOST]),
        )
    except DAMAGED:
        return None


def _intervention(one: Any, began_at_s: float) -> Intervention:
    if one["action"] not in _ACTIONS:
        raise ValueError
    return Intervention(
        action=one["action"],
        at_s=real_of(one["at_s"]) - began_at_s,
        step=step_of(one["step"]),
        took_s=real_of(one["took_s"]),
        before=_readings(one["before"]),
        after=_readings(one["after"]),
    )


def _readings(found: Any) -> dict[str, int]:
    return {name: count_of(value) for name, value in found.items() if name in _METRICS}

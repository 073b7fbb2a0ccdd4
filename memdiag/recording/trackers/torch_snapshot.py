"""Snapshots of torch's CUDA memory (`torch.cuda.memory._dump_snapshot`), from their traces.

A snapshot has `segments` (what the allocator holds now) and, if a history was recorded,
`device_traces`: per device the last allocations and releases in order. The segments give the level
at the end; undoing the events one by one gives the levels before it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memdiag.errors import ReadError
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.table import Table
from memdiag.recording.trackers.safe_unpickler import NotPlain, load
from memdiag.values.sanitize import printable

# What an event adds to (allocated, reserved). A release counts from its request.
_ADDS = {
    "alloc": (1, 0),
    "free_requested": (-1, 0),
    "segment_alloc": (0, 1),
    "segment_map": (0, 1),
    "segment_free": (0, -1),
    "segment_unmap": (0, -1),
}
# A small pickle can refer to one list of events many times.
_EVENTS_AT_MOST = 30_000_000


@dataclass(slots=True)
class _Trace:
    """Events of one device: microseconds since 1970 (NaN where not recorded), and their changes."""

    at_us: array[float] = field(default_factory=lambda: array("d"))
    allocated: array[float] = field(default_factory=lambda: array("d"))
    reserved: array[float] = field(default_factory=lambda: array("d"))


def read_snapshot(source: Source) -> Table:
    """Allocated and reserved memory of each device after each event. Raises ReadError for
    every other pickle.
    """
    try:
        snapshot = load(source.all_bytes())
    except NotPlain as error:
        raise ReadError(
            f"this pickle is not read: {printable(str(error))[:120]}",
            source=source.name,
            remedy="of pickles only torch.cuda.memory's snapshots are read, since others may run "
            "code; export anything else as CSV",
        ) from error
    traces = snapshot.get("device_traces") if isinstance(snapshot, dict) else None
    if not isinstance(traces, list):
        raise ReadError(
            "this pickle is not a snapshot of torch's memory",
            source=source.name,
            remedy="write one with torch.cuda.memory._dump_snapshot('snapshot.pickle')",
        )
    _refuse_endless(traces, source.name)
    tables = [
        frame
        for device, events in enumerate(traces)
        if (frame := _levels(snapshot, device, events)) is not None
    ]
    if not tables:
        raise ReadError(
            "this snapshot has no history, only a single moment",
            source=source.name,
            remedy="call torch.cuda.memory._record_memory_history() when the training begins",
        )
    note = "memory is followed from event to event of the allocator's trace"
    return Table.of(pl.concat(tables), notes=(note,))


def _refuse_endless(traces: list[Any], source: str) -> None:
    if sum(len(events) for events in traces if isinstance(events, list)) > _EVENTS_AT_MOST:
        raise ReadError(
            f"this snapshot has more than {_EVENTS_AT_MOST:,} events",
            source=source,
            remedy="keep fewer: _record_memory_history(max_entries=1_000_000)",
        )


def _levels(snapshot: Mapping[str, Any], device: int, events: Any) -> pl.DataFrame | None:
    trace = _Trace()
    for event in events if isinstance(events, list) else ():
        _follow(event, trace)
    if not trace.at_us:
        return None
    at = np.asarray(trace.at_us)
    frame = {"gpu": np.full(at.size, device)}
    if np.isfinite(at).all():
        frame["elapsed (us)"] = at - at.min()
    else:
        frame["sample"] = np.arange(at.size)
    for name, changes, size in (
        ("allocated (bytes)", trace.allocated, "allocated_size"),
        ("reserved (bytes)", trace.reserved, "total_size"),
    ):
        now = sum(_sizes(snapshot.get("segments"), device, size))
        added = np.cumsum(np.asarray(changes))
        frame[name] = now - (added[-1] - added)
    return pl.DataFrame(frame)


def _follow(event: Any, trace: _Trace) -> None:
    if not isinstance(event, dict):
        return
    adds, size = _ADDS.get(str(event.get("action"))), event.get("size")
    if adds is None or not isinstance(size, int) or not 0 <= size < 1 << 50:
        return
    at_us = event.get("time_us")
    trace.at_us.append(float(at_us) if isinstance(at_us, int) and at_us > 0 else np.nan)
    trace.allocated.append(adds[0] * size)
    trace.reserved.append(adds[1] * size)


def _sizes(segments: Any, device: int, name: str) -> Iterator[int]:
    for segment in segments if isinstance(segments, list) else ():
        size = segment.get(name) if isinstance(segment, dict) else None
        if isinstance(size, int) and segment.get("device", 0) == device:
            yield size

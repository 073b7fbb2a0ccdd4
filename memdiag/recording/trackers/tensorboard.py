"""TensorBoard's event files: scalars in TFRecords of protocol buffers.

A file is a sequence of records: length (8 bytes), its checksum (4), an `Event` of that length, its
checksum (4). These fields of an Event are read (tensorflow/core/util/event.proto, framework/
summary.proto and tensor.proto): wall_time = 1, step = 2, summary = 5; of a Summary: value = 1; of
a Value: tag = 1, simple_value = 2, tensor = 8; of a tensor: dtype = 1, content = 4, and values of
a type of their own. Everything else, such as images and histograms, is skipped.
"""

from __future__ import annotations

import io
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from memdiag.errors import ReadError
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.read_options import ReadOptions
from memdiag.recording.tables.table import Table
from memdiag.recording.trackers.crc32c import masked_crc32c
from memdiag.recording.trackers.protobuf_wire import BYTES, Malformed, Message, fields
from memdiag.recording.trackers.sent_series import is_sent

_HEADER = struct.Struct("<QI")
_CHECKSUM_BYTES = 4
# An event of scalars has a few hundred bytes. Larger ones have images, audio or a graph.
_LARGEST_EVENT_BYTES = 1 << 20
_LONGEST_EVENT_BYTES = 1 << 31  # the limit of protocol buffers
_MOST_TAGS = 20_000

_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE = 1
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_DTYPE, _CONTENT = 1, 4
# Type of tensor -> (format of its bytes, the alternative field of its values).
_TENSORS: dict[int | bytes | None, tuple[str, int]] = {
    1: ("<f", 5),
    2: ("<d", 6),
    3: ("<i", 7),
    9: ("<q", 10),
}


@dataclass(slots=True)
class _Scalars:
    """One row per step: a row begins where the step changes, or a tag is repeated."""

    at: array[float] = field(default_factory=lambda: array("d"))
    steps: array[float] = field(default_factory=lambda: array("d"))
    rows: dict[str, array[int]] = field(default_factory=dict)
    values: dict[str, array[float]] = field(default_factory=dict)

    def add(self, at: float, step: int, tag: str, value: float) -> None:
        """Add one scalar. Above the limit of tags, new ones are skipped."""
        rows = self.rows.get(tag)
        if rows is None:
            if len(self.rows) >= _MOST_TAGS:
                return
            rows = self.rows[tag] = array("q")
            self.values[tag] = array("d")
        last = len(self.at) - 1
        if last < 0 or self.steps[last] != step or (rows and rows[-1] == last):
            self.at.append(at)
            self.steps.append(step)
            last += 1
        rows.append(last)
        self.values[tag].append(value)


def read_events(source: Source, options: ReadOptions) -> Table:
    """Steps, times, and the scalars that are memory or that the user asks for."""
    scalars = _Scalars()
    with source.opened() as file:
        notes = tuple(_gather(file, scalars))
    if not scalars.at:
        raise ReadError(
            "this event file has no scalars",
            source=source.name,
            remedy="log memory as one: writer.add_scalar('memory/rss_mb', rss_mb, step)",
        )
    return _as_table(scalars, options, notes)


def _gather(file: BinaryIO, scalars: _Scalars) -> Iterator[str]:
    """Fill the scalars; yield notes on what could not be read."""
    number = 0
    while header := file.read(_HEADER.size):
        number += 1
        if len(header) < _HEADER.size:
            yield "the last event is torn off and was left out"
            return
        length, checksum = _HEADER.unpack(header)
        if masked_crc32c(header[:8]) != checksum or length > _LONGEST_EVENT_BYTES:
            yield f"event {number} is damaged: it and all after it were left out"
            return
        if length > _LARGEST_EVENT_BYTES:
            file.seek(length + _CHECKSUM_BYTES, io.SEEK_CUR)
            continue
        record = file.read(length + _CHECKSUM_BYTES)
        if len(record) < length + _CHECKSUM_BYTES:
            yield "the last event is torn off and was left out"
            return
        try:
            _take(record[:length], scalars)
        except Malformed:
            yield f"event {number} is damaged: left out"


def _take(event: bytes, scalars: _Scalars) -> None:
    at, step, summaries = 0.0, 0, []
    for number, _, value in fields(event):
        if number == _WALL_TIME and isinstance(value, bytes) and len(value) == 8:
            (at,) = struct.unpack("<d", value)
        elif number == _STEP and isinstance(value, int):
            step = value - (1 << 64) if value >= 1 << 63 else value
        elif number == _SUMMARY and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, kind, value in fields(summary):
            if number == _VALUE and kind == BYTES and isinstance(value, bytes):
                tag, scalar = _scalar(value)
                if tag and scalar is not None:
                    scalars.add(at, step, tag, scalar)


def _scalar(value: Message) -> tuple[str, float | None]:
    """Tag and number of a summary's value; None if it is not a scalar."""
    tag, scalar = "", None
    for number, kind, content in fields(value):
        if not isinstance(content, bytes):
            continue
        if number == _TAG:
            tag = content.decode("utf-8", errors="replace")
        elif number == _SIMPLE and len(content) == 4:
            (scalar,) = struct.unpack("<f", content)
        elif number == _TENSOR and kind == BYTES:
            scalar = _tensor(content)
    return tag, scalar


def _tensor(tensor: Message) -> float | None:
    """The number in a tensor of one element; None for other tensors."""
    found = {number: value for number, _, value in fields(tensor)}
    packing, own = _TENSORS.get(found.get(_DTYPE), ("", 0))
    content = found.get(_CONTENT) or found.get(own)
    if isinstance(content, int):
        return float(content - (1 << 64) if content >= 1 << 63 else content)
    if not packing or content is None or len(content) != struct.calcsize(packing):
        return None
    return float(struct.unpack(packing, content)[0])


def _as_table(scalars: _Scalars, options: ReadOptions, notes: tuple[str, ...]) -> Table:
    asked = {choice.name.lower() for choice in options.metrics} | {options.x.lower()}
    parts = {tag: recognise(tag).part for tag in scalars.rows}
    chosen = [
        tag
        for tag, part in parts.items()
        if part in {Part.METRIC, Part.AXIS} or tag.lower() in asked or is_sent(tag)
    ]
    if Part.METRIC not in parts.values():
        chosen += [tag for tag in parts if tag not in chosen][:12]  # for the message
    columns = [pl.Series(np.asarray(scalars.steps)), pl.Series(np.asarray(scalars.at))]
    for tag in chosen:
        column = np.full(len(scalars.at), np.nan)
        column[np.asarray(scalars.rows[tag])] = np.asarray(scalars.values[tag])
        columns.append(pl.Series(column))
    return Table(
        names=("step", "wall_time", *chosen), columns=tuple(columns), first_line=None, notes=notes
    )

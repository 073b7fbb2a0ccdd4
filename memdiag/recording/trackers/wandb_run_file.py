"""The file of a run of Weights & Biases (`run-ID.wandb`), as an offline run leaves it.

After a header of 7 bytes come blocks of 32 KiB with the records of a LevelDB log: checksum (4
bytes), length (2), type (1: whole, 2: first part, 3: middle, 4: last), content. A record is a
protocol buffer. These fields are read (wandb/proto/wandb_internal.proto): history = 2; of it: item
= 1; of an item: key = 1, nested_key = 2, value_json = 16.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from memdiag.errors import ReadError
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.table import Table
from memdiag.recording.trackers.protobuf_wire import BYTES, Malformed, fields
from memdiag.recording.trackers.wandb import as_history

_HEAD_BYTES, _BLOCK_BYTES = 7, 1 << 15
_RECORD = struct.Struct("<IHB")
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_LONGEST_BYTES = 64 << 20
_HISTORY, _ITEM, _KEY, _NESTED, _VALUE = 2, 1, 1, 2, 16
_LONGEST_NUMBER = 40
_MOST_NAMES, _MOST_CELLS = 20_000, 50_000_000


@dataclass(slots=True)
class _History:
    rows: int = 0
    places: dict[str, array[int]] = field(default_factory=dict)
    values: dict[str, array[float]] = field(default_factory=dict)

    def add(self, row: dict[str, float]) -> None:
        for name, value in row.items():
            if name not in self.places and len(self.places) >= _MOST_NAMES:
                continue
            self.places.setdefault(name, array("q")).append(self.rows)
            self.values.setdefault(name, array("d")).append(value)
        self.rows += 1


def read_run_file(source: Source) -> Table:
    """The history of the run: one row per `log`. Raises ReadError if there is none."""
    history, damaged = _History(), 0
    with source.opened() as file:
        for record in _records(file):
            try:
                if row := _row(record):
                    history.add(row)
            except (Malformed, ValueError):
                damaged += 1
    if not history.rows:
        raise ReadError(
            "this run has no history",
            source=source.name,
            remedy="log memory: run.log({'memory/rss_mb': rss_mb})",
        )
    if history.rows * len(history.places) > _MOST_CELLS:
        raise ReadError(f"its history has {len(history.places):,} columns", source=source.name)
    notes = (f"{damaged:,} damaged records were left out",) if damaged else ()
    columns = {name: _column(history, name) for name in history.places}
    table = Table.of(pl.DataFrame(columns), notes=notes)
    return as_history(table) or table


def _column(history: _History, name: str) -> pl.Series:
    column = np.full(history.rows, np.nan)
    column[np.asarray(history.places[name])] = np.asarray(history.values[name])
    return pl.Series(column).fill_nan(None)


def _records(file: BinaryIO) -> Iterator[bytes]:
    """The records of the log, up to where it is torn off."""
    file.read(_HEAD_BYTES)
    left, begun = _BLOCK_BYTES - _HEAD_BYTES, b""
    while True:
        if left < _RECORD.size:  # the rest of a block is filled with zeros
            file.read(left)
            left = _BLOCK_BYTES
        head = file.read(_RECORD.size)
        if len(head) < _RECORD.size:
            return
        _, length, kind = _RECORD.unpack(head)
        content = file.read(length)
        left -= _RECORD.size + length
        if len(content) < length or left < 0 or len(begun) > _LONGEST_BYTES:
            return
        if kind in {_WHOLE, _FIRST}:
            begun = b""
        begun += content
        if kind in {_WHOLE, _LAST}:
            yield begun


def _row(record: bytes) -> dict[str, float]:
    """The numbers of a record of the history; {} for other records."""
    row = {}
    for number, kind, history in fields(record):
        if number != _HISTORY or kind != BYTES or not isinstance(history, bytes):
            continue
        for part, _, item in fields(history):
            if part == _ITEM and isinstance(item, bytes):
                name, value = _item(item)
                if value is not None:
                    row[name] = value
    return row


def _item(item: bytes) -> tuple[str, float | None]:
    key, nested, text = "", [], ""
    for number, _, content in fields(item):
        if isinstance(content, bytes):
            if number == _KEY:
                key = content.decode(errors="replace")
            elif number == _NESTED:
                nested.append(content.decode(errors="replace"))
            elif number == _VALUE:
                text = content.decode(errors="replace")
    found: object = json.loads(text) if 0 < len(text) < _LONGEST_NUMBER else None
    value = float(found) if isinstance(found, (int, float)) else None
    return key or ".".join(nested), value

"""InfluxDB's line protocol, as Telegraf writes it to files.

    procstat,host=gpu1,pid=4711 memory_rss=4000000000i,cpu_usage=99.2 1763628000000000000

A measurement with its tags, its fields, and a time since 1970.
"""

from __future__ import annotations

import re
from typing import Any

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table

_WORD = r"(?:\\.|[^\s,=\\])+"
_VALUE = r'(?:"(?:\\.|[^"\\])*"|[^\s,"]+)'
_PAIR = re.compile(rf"({_WORD})=({_VALUE})")
_LINE = re.compile(
    rf"(?P<measurement>(?:\\.|[^\s,\\])+)(?P<tags>(?:,{_WORD}=(?:\\.|[^\s,\\])+)*) "
    rf"(?P<fields>{_WORD}={_VALUE}(?:,{_WORD}={_VALUE})*) (?P<time>[0-9]{{9,20}})\s*"
)
_NUMBER = re.compile(r"([-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)[iu]?")
_PID = "pid"  # a field of Telegraf's `procstat`, unless it is made a tag
_LOOKED_AT = 8
_COLUMNS_AT_MOST = 2000


def is_lines(source: Source) -> bool:
    """Return True if the first lines are points with a time."""
    first = [line for line in source.head().split("\n")[:_LOOKED_AT] if line.strip()]
    return len(first) > 1 and all(_LINE.fullmatch(line) is not None for line in first[:-1])


def read_lines(source: Source) -> Table:
    """One row per point; fields are named after their measurement. Text fields are left out."""
    rows: list[dict[str, Any]] = []
    torn = 0
    for line in source.all_bytes().decode("utf-8", errors="replace").split("\n"):
        if (found := _LINE.fullmatch(line)) is not None:
            rows.append(_row(found))
        elif line.strip() and not line.startswith("#"):
            torn += 1
    names = list(dict.fromkeys(name for row in rows for name in row))[:_COLUMNS_AT_MOST]
    columns = {name: [row.get(name) for row in rows] for name in names}
    lines = "line is" if torn == 1 else "lines are"
    notes = (f"{torn} {lines} not of InfluxDB's line protocol",) if torn else ()
    return Table.of(pl.DataFrame(columns, strict=False), notes=notes)


def _row(found: re.Match[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"time": int(found["time"])}
    row |= {_plain(name): _plain(value) for name, value in _PAIR.findall(found["tags"])}
    measurement = _plain(found["measurement"])
    for name, value in _PAIR.findall(found["fields"]):
        if (number := _NUMBER.fullmatch(value)) is None:
            continue
        if name == _PID:
            row.setdefault(_PID, number[1])
        else:
            row[_in_bytes(f"{measurement}_{_plain(name)}")] = float(number[1])
    return row


def _in_bytes(name: str) -> str:
    """The name with the unit in which Telegraf reports memory, if it is of memory without one."""
    meaning = recognise(name)
    is_size = meaning.part is Part.METRIC and meaning.unit is None
    return f"{name} (bytes)" if is_size else name


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)

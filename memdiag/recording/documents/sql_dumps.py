"""Rows in a dump of a database: `INSERT INTO stat VALUES (1,'2024-10-02 01:00:00',417591296),...`
below `CREATE TABLE`, or with names of their own, and of PostgreSQL's `COPY stat (id, rss) FROM`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table

_QUOTE = r"[`\"\[]?"
_TABLE = rf"((?:{_QUOTE}\w+[`\"\]]?\.)?{_QUOTE}\w+)[`\"\]]?"
_NAMES = r"\(([^()]{1,8000})\)"
_INSERT = re.compile(rf"(?i)\bINSERT\s+INTO\s+{_TABLE}\s*(?:{_NAMES}\s*)?VALUES\s*(?=\()")
_COPY = re.compile(rf"(?m)^COPY {_TABLE} {_NAMES} FROM stdin;\n")
_CREATE = re.compile(
    rf"(?i)\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_TABLE}\s*\(([^;]{{1,8000}});"
)
_COLUMN = re.compile(r"(?m)^\s{0,16}(?:[`\"\[]([^`\"\]\n]{1,64})[`\"\]]|(\w{1,64}))\s+\w")
_KEYS = frozenset({"primary", "key", "unique", "constraint", "foreign", "index", "check"})
_CELL = re.compile(r"\s*(?:'((?:[^'\\]|''|\\.){0,16000})'|([^',()\s]{1,64}))\s*([,)])")
_NEXT = re.compile(r"\s*,\s*(?=\()")
_END_OF_COPY = "\n\\."
_ROWS_AT_LEAST = 4
# (Each may be searched to its end for a quote.)
_UNREADABLE_AT_MOST = 100
_NULLS = frozenset({"NULL", "null", "\\N"})

Row = list[str | None]


def is_dump(source: Source) -> bool:
    """Return True if a statement in the head fills columns with a name of memory."""
    head = source.head()
    if "INSERT INTO" not in head.upper() and "\nCOPY " not in f"\n{head}":
        return False
    return any(map(_has_memory, _columns(head).values()))


def read_dump(source: Source) -> Table | None:
    """The rows of the table with a name of memory that has the most."""
    text = source.all_bytes().decode("utf-8", errors="replace").replace("\r\n", "\n")
    names = {
        one: columns for one, columns in _columns(source.head()).items() if _has_memory(columns)
    }
    rows: dict[str, list[Row]] = {one: [] for one in names}
    for table, row in _rows(text):
        if table in rows and len(row) == len(names[table]):
            rows[table].append(row)
    most = max(rows, key=lambda table: len(rows[table]), default="")
    if not most or len(rows[most]) < _ROWS_AT_LEAST:
        return None
    columns = zip(names[most], zip(*rows[most], strict=True), strict=True)
    return Table.of(pl.DataFrame([pl.Series(name, cells, pl.String) for name, cells in columns]))


def _columns(text: str) -> dict[str, list[str]]:
    """The names of the columns of each table."""
    found: dict[str, list[str]] = {}
    for one in _CREATE.finditer(text):
        columns = [column[1] or column[2] for column in _COLUMN.finditer("\n" + one[2])]
        found[_plain(one[1])] = [name for name in columns if name.lower() not in _KEYS]
    for one in (*_INSERT.finditer(text), *_COPY.finditer(text)):
        if one[2]:
            found[_plain(one[1])] = [_plain(name) for name in one[2].split(",")]
    return {table: names for table, names in found.items() if len(set(names)) == len(names)}


def _rows(text: str) -> Iterator[tuple[str, Row]]:
    unreadable = 0
    for one in _INSERT.finditer(text):
        at: int | None = one.end()
        while at is not None:
            row, end = _row(text, at)
            if row:
                yield _plain(one[1]), row
            following = _NEXT.match(text, end)
            at = None if not row or following is None else following.end()
            unreadable += not row
        if unreadable > _UNREADABLE_AT_MOST:
            return
    for one in _COPY.finditer(text):
        end = text.find(_END_OF_COPY, one.end() - 1)
        lines = text[one.end() : end if end >= 0 else len(text)].split("\n")
        yield from ((_plain(one[1]), list(map(_cell, line.split("\t")))) for line in lines if line)


def _row(text: str, begin: int) -> tuple[Row, int]:
    """The cells between the brackets that begin there, and where they end; [] for other content."""
    row: Row = []
    at = begin + 1
    while (cell := _CELL.match(text, at)) is not None:
        row.append(_cell(cell[2]) if cell[1] is None else cell[1])
        at = cell.end()
        if cell[3] == ")":
            return row, at
    return [], at


def _cell(text: str) -> str | None:
    return None if text in _NULLS else text


def _plain(name: str) -> str:
    return name.strip().strip('`"[]')


def _has_memory(names: list[str]) -> bool:
    return any(recognise(name).part is Part.METRIC for name in names)

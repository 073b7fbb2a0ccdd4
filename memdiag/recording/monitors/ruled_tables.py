"""Tables with a rule of dashes or equals signs below their header, printed again and again: by
sstat, sacct, tasklist, PowerShell and psql.

The rule tells where the columns are, so that names and cells may have blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import TICK, all_lines, clock_in
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.csv_dialect import is_number
from memdiag.recording.tables.table import Table

# psql's: `-----+-----`, with bars between cells.
_RULE = re.compile(r"\s*(?:-{2,}(?:(?:\s+|\+)-{2,})+|={2,}(?:\s+={2,})+)\s*")
_BORDER = " \t|"
_MARK = re.compile(r"-+|=+")
_AMOUNT = re.compile(r"[0-9][0-9.,'\s]*(?:[KMGTkmgt]i?)?[Bb]?")
_WHOLE_K = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})* K")
_DATE_TIME = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}[ T]+[0-9]{1,2}:[0-9]{2}")
# "Tuesday, March 11, 2025 9:00:00 AM", not "2025-03-11 09:00:00".
_IN_WORDS = re.compile(r"[^\W\d_]{3}")
_TABLES_AT_LEAST, _ROWS_AT_LEAST = 2, 4
_ROWS_LOOKED_AT = 60
# What these tools call a process.
_PROCESSES = {
    "JobID": "process",
    "Image Name": "process",
    "Abbildname": "process",
    "ProcessName": "process",
    "Id": "pid",
}

Spans = list[tuple[int, int | None]]


def has_ruled_tables(source: Source) -> bool:
    """Return True if the head has several such headers with names of memory, or one above rows of
    one process, or with an axis, between two rules or above rows with empty cells.
    """
    lines = source.head().split("\n")
    headers = [one for one in _headers(lines) if any(map(_is_memory, one[1]))]
    if len(headers) != 1:
        return len(headers) >= _TABLES_AT_LEAST
    at, names = headers[0]
    rows = lines[at + 1 : at + 1 + _ROWS_LOOKED_AT]
    if any(map(_is_axis, names)):
        return lines[at - 2 : at - 1] == lines[at : at + 1] or _has_gaps(rows, names)
    return _are_of_one([one for row in rows if (one := _row(row, _spans(lines[at]), names))])


def _are_of_one(rows: Sequence[dict[str, str]]) -> bool:
    """Return True if several rows begin with the same name: the samples of one process."""
    firsts = {next(iter(row.values())) for row in rows}
    return len(rows) >= _ROWS_AT_LEAST and len(firsts) == 1 and not any(map(is_number, firsts))


def _has_gaps(rows: Sequence[str], names: Sequence[str]) -> bool:
    """Return True if some rows have fewer cells than there are names."""
    return any(0 < len(row.split()) < len(names) for row in rows)


def read_ruled_tables(source: Source) -> Table | None:
    """One row per row of each table. A time on a line between two tables dates the next."""
    lines = all_lines(source)
    headers = dict(_headers(lines))
    spans: Spans = []
    names: list[str] = []
    rows: list[dict[str, str]] = []
    moments: list[dict[str, str]] = []
    number, time = -1, ""
    for at, line in enumerate(lines):
        if at in headers:
            spans, names = _spans(line), headers[at]
            number += 1
            continue
        row = _row(line, spans, names) if spans else None
        if row is not None:
            rows.append(row)
            moments.append({"time": time} if time else {TICK: str(number)})
        elif clock := clock_in(line):
            time, spans = clock if _IN_WORDS.search(line) else line.strip(), []
    if number == 0 and not time and _are_of_one(rows):
        moments = [{TICK: str(at)} for at in range(len(rows))]
    if dated := _dated(rows):
        rows = [{"time": row.pop(dated), **row} for row in rows]
    rows = [moment | row for moment, row in zip(moments, _with_kib(rows), strict=True)]
    return Table.of(pl.DataFrame(rows, infer_schema_length=None)) if rows else None


def _dated(rows: Sequence[dict[str, str]]) -> str:
    """The column of dates with times, in which each row has one; "" if there is none."""
    first = rows[0] if rows else {}
    dates = (name for name in first if not _is_axis(name) and _DATE_TIME.match(first[name]))
    return next((one for one in dates if all(_DATE_TIME.match(row[one]) for row in rows)), "")


def _with_kib(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows with what tasklist prints in KiB: `329,728 K`, in German `329.728 K`."""
    kilobytes = [cell for row in rows for cell in row.values() if cell.endswith(" K")]
    between = "." if all(map(_WHOLE_K.fullmatch, kilobytes)) else ","
    return [
        {
            name: f"{cell.replace(between, '')}iB" if cell.endswith(" K") else cell
            for name, cell in row.items()
        }
        for row in rows
    ]


def _row(line: str, spans: Spans, names: Sequence[str]) -> dict[str, str] | None:
    """The cells of a row; None for a line without a number below a name of memory, and for a date,
    whose words go across columns.
    """
    cells = (line[begin:end].strip(_BORDER) for begin, end in spans)
    row = dict(zip(names, cells, strict=True))
    if not any(_is_memory(name) and _AMOUNT.fullmatch(cell) for name, cell in row.items()):
        return None
    across = any(re.fullmatch(r"\S\S", line[end - 1 : end + 1]) for _, end in spans if end)
    return None if across and clock_in(line) else row


def _headers(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The number of each rule, and the names above it."""
    for at, (above, line) in enumerate(pairwise(lines), 1):
        if _RULE.fullmatch(line) and above.strip():
            names = [above[begin:end].strip(_BORDER) for begin, end in _spans(line)]
            if any(map(is_number, names)):  # a rule below the table
                continue
            yield at, [_PROCESSES.get(name, name) for name in names]


def _spans(rule: str) -> Spans:
    """Where the columns are. Numbers that are too wide begin in the gap before their column."""
    ends = [mark.end() for mark in _MARK.finditer(rule)]
    return [*zip([0, *ends[:-2]], ends[:-1], strict=True), (ends[-2], None)]


def _is_memory(name: str) -> bool:
    return recognise(name).part is Part.METRIC


def _is_axis(name: str) -> bool:
    return recognise(name).part is Part.AXIS

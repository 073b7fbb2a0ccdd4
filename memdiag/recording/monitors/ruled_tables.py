"""Tables with blanks in names and cells, printed again and again: by sstat, sacct, tasklist,
PowerShell and psql with a rule of dashes or equals signs below the header, by ceph and nomad
without.

The rule, or else the names of a header that comes again, say where the columns are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.aligned_cells import Name, cells_below, names_of
from memdiag.recording.monitors.process_tables import long_lived
from memdiag.recording.monitors.samplings import (
    TICK,
    Row,
    all_lines,
    clock_in,
    goes_back,
    moment_in,
)
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.cells_of_lines import is_number
from memdiag.recording.tables.named_values import is_value, names_values
from memdiag.recording.tables.table import Table
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.sanitize import printable

# psql's: `-----+-----`, with bars between cells.
_RULE = re.compile(r"\s*(?:-{2,}(?:(?:\s+|\+)-{2,})+|={2,}(?:\s+={2,})+)\s*")
_BORDER = " \t|"
_MARK = re.compile(r"-+|=+")
# Perhaps of a total: `119 MiB/512 MiB`, `1.2GiB / 62.7GiB`.
_AMOUNT = re.compile(r"[0-9][0-9.,'\s]*(?:[KMGTkmgt]i?)?[Bb%]?(?:\s?/\s?[0-9].*)?")
# How much it is more than before, as poolmon prints it: `72710704 (      0)`.
_INCREASE = re.compile(r"(?<=[0-9]) \( {0,16}-?[0-9]{1,16}\)")
_WHOLE_K = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})* K")
_TIME_ALONE = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}")
_NAMED_AMOUNT = re.compile(
    r"((?<!\w)[A-Za-z][A-Za-z_]{0,24}(?: [A-Za-z_]{1,24}){0,4})\s{0,4}[:=]\s{0,8}([0-9]{1,20})"
)
_DATE_TIME = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}[ T]+[0-9]{1,2}:[0-9]{2}")
# "Tuesday, March 11, 2025 9:00:00 AM", not "2025-03-11 09:00:00".
_IN_WORDS = re.compile(r"[^\W\d_]{3}")
_TABLES_AT_LEAST, _ROWS_AT_LEAST = 2, 4
_APART = re.compile(r"\S(?: {2,}|\t+)\S")
_LONGEST_HEADER = 400
_WORDS_AT_LEAST = 3
_ROWS_LOOKED_AT = 60
# What these tools call a process.
_PROCESSES = {
    "JobID": "process",
    "Image Name": "process",
    "Abbildname": "process",
    "ProcessName": "process",
    "Id": "pid",
    "PID": "pid",
    "Tag": "instance",  # of poolmon
}

Spans = list[tuple[int, int | None]]
RowOf = Callable[[str], "Row | None"]


def has_ruled_tables(source: Source) -> bool:
    """Return True if the head has several such headers with names of memory, or one above rows of
    one process, or with an axis, between two rules or above rows with empty cells.
    """
    lines = source.head().replace("\r", "").split("\n")
    headers = [one for one in _headers(lines) if _has_memory(one[1])]
    if len(headers) != 1:
        return len(headers) >= _TABLES_AT_LEAST
    at, names = headers[0]
    rows = lines[at + 1 : at + 1 + _ROWS_LOOKED_AT]
    if any(map(_is_axis, names)):
        if _are_across(rows, _spans(lines[at])):
            return True
        return lines[at - 2 : at - 1] == lines[at : at + 1] or _has_gaps(rows, names)
    return _are_of_one([one for row in rows if (one := _row(row, _spans(lines[at]), names))])


def _are_of_one(rows: Sequence[Row]) -> bool:
    """Return True if several rows begin with the same name: the samples of one process."""
    firsts = {next(iter(row.values())) for row in rows}
    return len(rows) >= _ROWS_AT_LEAST and len(firsts) == 1 and not any(map(is_number, firsts))


def _has_gaps(rows: Sequence[str], names: Sequence[str]) -> bool:
    """Return True if some rows have fewer cells than there are names."""
    return any(0 < len(row.split()) < len(names) for row in rows)


def has_repeated_tables(source: Source) -> bool:
    """Return True if such a header comes again in the head, above several rows."""
    lines = source.head().split("\n")
    rows = (row_of(line) for row_of in _repeated(lines).values() for line in lines)
    return sum(row is not None for row in rows) >= _ROWS_AT_LEAST


def read_ruled_tables(source: Source) -> Table | None:
    """One row per row of each table. A time on a line between two tables dates the next."""
    lines = all_lines(source)
    headers = {at: (tuple(names), _ruled(lines, at, names)) for at, names in _headers(lines)}
    return _table(lines, headers)


def read_repeated_tables(source: Source) -> Table | None:
    """The same of tables without rules."""
    lines = all_lines(source)
    known = _repeated(source.head().split("\n"))
    headers = {at: (line, known[line]) for at, line in enumerate(lines) if line in known}
    table = _table(lines, headers)
    return table if table is None or "pid" not in table.names else long_lived(table)


def _table(lines: Sequence[str], headers: Mapping[int, tuple[object, RowOf]]) -> Table | None:
    """The rows below the headers; where one comes again a sampling begins."""
    row_of: RowOf | None = None
    rows: list[Row] = []
    moments: list[Row] = []
    between: list[str] = []
    number, time = 0, ""
    above: set[object] = set()
    for at, line in enumerate(lines):
        if at in headers:
            header, row_of = headers[at]
            if header in above:
                number, above = number + 1, set()
            above.add(header)
            continue
        row = row_of(line) if row_of is not None else None
        if row is not None:
            rows.append(row)
            moments.append({TICK: str(number), "time": time} if time else {TICK: str(number)})
        elif moment := _moment(line):
            time, row_of = moment, None
        else:
            between.append(line)
    if number == 0 and not time and _are_of_one(rows):
        moments = [{TICK: str(at)} for at in range(len(rows))]
    moments = _of_one_kind(moments)
    if dated := _dated(rows):
        rows = [{"time": row.pop(dated), **row} for row in rows]
    if number:
        rows = [{name: row[name] for name in row if not _is_load(name)} for row in rows]
    rows = [moment | row for moment, row in zip(moments, _with_kib(rows), strict=True)]
    if not rows:
        return None
    table = Table.of(pl.DataFrame(rows, infer_schema_length=None))
    return _with_amounts_between(table, between, number)


def _of_one_kind(moments: Sequence[Row]) -> list[Row]:
    """The times of samplings, or their numbers if there are none or if times of day go back."""
    times = [one.get("time", "") for one in moments]
    if goes_back([time for time in times if _TIME_ALONE.fullmatch(time)]):
        return [{TICK: one[TICK]} for one in moments]
    return [{"time": one["time"]} if "time" in one else one for one in moments]


def _moment(line: str) -> str:
    """The time in a line, "" if there is none."""
    if not clock_in(line):
        return ""
    return moment_in(line) if _IN_WORDS.search(line) else line.strip()


def _with_amounts_between(table: Table, lines: Sequence[str], samplings: int) -> Table:
    """The table with a note of an amount of memory that changes in the lines between the samplings
    and in no row: `Processor Pool Used: 416681027`.
    """
    amounts: dict[str, set[str]] = {}
    for line in lines:
        for name, amount in _NAMED_AMOUNT.findall(line[:_LONGEST_HEADER]):
            meaning = recognise(name)
            if meaning.part is Part.METRIC and meaning.unit is not Unit.COUNT:
                amounts.setdefault(name.strip(), set()).add(amount)
    changing = [name for name, seen in amounts.items() if 2 * len(seen) > samplings > 1]
    if not changing:
        return table
    note = f"not read, in the lines between the tables: {printable(changing[0])}"
    return replace(table, notes=(*table.notes, note), unread_share=max(table.unread_share, 1 / 2))


def _dated(rows: Sequence[Row]) -> str:
    """The column of dates with times, in which each row has one; "" if there is none."""
    first = rows[0] if rows else {}
    dates = (name for name in first if not _is_axis(name) and _DATE_TIME.match(first[name]))
    in_all = (one for one in dates if all(_DATE_TIME.match(row.get(one, "")) for row in rows))
    return next(in_all, "")


def _repeated(lines: Sequence[str]) -> dict[str, RowOf]:
    """The headers that come again, and the rows of each; {} unless one has names of memory, or if
    such a one has an axis: its rows are lines of a log.
    """
    often = Counter(filter(_may_be_header, lines))
    often += Counter(above for above, row in pairwise(lines) if _is_of_words(above, row))
    headers = [line for line, count in often.items() if count >= _TABLES_AT_LEAST]
    known: dict[str, RowOf] = {}
    with_axis: list[bool] = []
    for header in headers:
        rows = [b for a, b in pairwise(lines) if a == header][:_ROWS_LOOKED_AT]
        names = names_of(header, rows)
        known[header] = _aligned(names)
        if "\t" in header or _APART.search(header) is None:
            delimiter = "\t" if "\t" in header else None
            names = [(name.strip(), 0, 0) for name in header.split(delimiter)]
            known[header] = _delimited([name for name, _, _ in names], delimiter)
        if any(_is_memory(name) for name, _, _ in names):
            with_axis.append(any(_is_axis(name) and not _is_load(name) for name, _, _ in names))
    return known if with_axis and not any(with_axis) else {}


def _may_be_header(line: str) -> bool:
    is_short = 0 < len(line) <= _LONGEST_HEADER and not any(map(str.isdigit, line))
    return is_short and _APART.search(line) is not None


def _is_of_words(header: str, row: str) -> bool:
    """Return True if each word may be the name of the cell below it, and one is that of memory."""
    names, cells = header.split(), row.split()
    if len(names) < _WORDS_AT_LEAST or len(cells) != len(names) or len(header) > _LONGEST_HEADER:
        return False
    if any(map(str.isdigit, header)) or _APART.search(header) is not None:
        return False
    below = zip(names, cells, strict=True)
    return any(is_number(cell) and _is_memory(name) for name, cell in below)


def _aligned(names: Sequence[Name]) -> RowOf:
    shown = [_PROCESSES.get(name, name) for name, _, _ in names]

    def row_of(line: str) -> Row | None:
        line = _INCREASE.sub(lambda found: " " * len(found[0]), line)
        return _with_amount(dict(zip(shown, cells_below(names, line), strict=True)))

    return row_of


def _delimited(names: Sequence[str], delimiter: str | None) -> RowOf:
    """Rows of as many cells. delimiter: None for any blanks."""
    shown = [_PROCESSES.get(name, name) for name in names]

    def row_of(line: str) -> Row | None:
        cells = [cell.strip() for cell in line.split(delimiter)]
        return (
            _with_amount(dict(zip(shown, cells, strict=True))) if len(cells) == len(shown) else None
        )

    return row_of


def _ruled(lines: Sequence[str], at: int, names: Sequence[str]) -> RowOf:
    """The rows below the rule in this line. PowerShell's is only as long as the names, and cells
    may be longer: they belong to the names above them.
    """
    spans, rows = _spans(lines[at]), lines[at + 1 : at + 1 + _ROWS_LOOKED_AT]
    if _are_across(rows, spans):
        return _aligned(names_of(lines[at - 1], rows))
    return lambda line: _row(line, spans, names)


def _are_across(rows: Sequence[str], spans: Spans) -> bool:
    """Return True if most of the rows up to the first empty line have a cell across columns."""
    above = list(takewhile(str.strip, rows))
    across = sum(any(_is_across(row, end) for _, end in spans) for row in above)
    return len(above) >= _ROWS_AT_LEAST and 2 * across > len(above)


def _is_across(line: str, end: int | None) -> bool:
    return end is not None and re.fullmatch(r"\S\S", line[end - 1 : end + 1]) is not None


def _with_kib(rows: Sequence[Row]) -> list[Row]:
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


def _row(line: str, spans: Spans, names: Sequence[str]) -> Row | None:
    """The cells of a row; None for a line without an amount, and for a date, whose words go across
    columns.
    """
    cells = (line[begin:end].strip(_BORDER) for begin, end in spans)
    row = _with_amount(dict(zip(names, cells, strict=True)))
    if row is None:
        return None
    across = any(_is_across(line, end) for _, end in spans)
    return None if across and clock_in(line) else row


def _with_amount(row: Row) -> Row | None:
    """The row, None if no number is below a name of memory, or of a value that another column
    names.
    """
    is_named = names_values(list(row))
    cells = (c for name, c in row.items() if _is_memory(name) or (is_named and is_value(name)))
    return row if any(map(_AMOUNT.fullmatch, cells)) else None


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


def _is_load(name: str) -> bool:
    """Return True for what a queue or a server may hold as well as count: `messages`, `jobs`."""
    return recognise(name).axis is AxisKind.REQUEST


def _has_memory(names: Sequence[str]) -> bool:
    return any(map(_is_memory, names)) or names_values(names)


def _is_axis(name: str) -> bool:
    return recognise(name).part is Part.AXIS

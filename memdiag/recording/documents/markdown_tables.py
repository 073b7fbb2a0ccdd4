"""Tables in documents, issues and chats: in Markdown, HTML, and the markup of wikis."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser

import numpy as np

from memdiag.errors import ReadError
from memdiag.recording.documents.wiki_tables import has_wiki_tables, wiki_tables, with_html
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.parsing.column_meaning import Part, is_setting, recognise
from memdiag.recording.tables.sideways import upright
from memdiag.recording.tables.table import Table
from memdiag.values.sanitize import printable

_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*")
# Of a table in reStructuredText, below each row: `+-----+-----+`, `+=====+=====+`.
_GRID_RULE = re.compile(r"\s*\+[-=]+(?:\+[-=]+)*\+\s*")
_AS_RULE = str.maketrans("+=", "|-")
_HTML_TABLE = re.compile(rb"<table\b|\[table\]", re.I)
# Of a second rule, and of the types that polars prints below the names.
_NO_CELL = re.compile(r"[-:=]*|[iuf](?:8|16|32|64)|str|bool|date|datetime\[.*\]")
_ROWS = re.compile("[1-9][0-9]{0,4}")
_MAX_BYTES = 64 << 20
_ROWS_AT_LEAST, _SHARE = 3, 0.25
_ROWS_IN_MESSAGE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A table and the line of its header.

    refusal: why its cells cannot be told apart, "" if they can.
    """

    line: int
    table: Table
    refusal: str = ""

    @property
    def has_memory(self) -> bool:
        """Return True if enough rows of a column have memory readings: a monitor may fail often."""
        length = len(self.table)
        return length >= _ROWS_AT_LEAST and any(
            recognise(name).part is Part.METRIC
            and int(np.isfinite(to_numbers(column).values).sum())
            >= max(_ROWS_AT_LEAST, _SHARE * length)
            for name, column in zip(self.table.names, self.table.columns, strict=True)
        )

    @property
    def has_settings(self) -> bool:
        """Return True if the rows are configurations: the first cells of most are different words,
        without a number, or the first column is a setting.
        """
        if is_setting(self.table.names[0]):
            return True
        first = self.table.series[0]
        words = first.filter(first.str.contains(r"^[^0-9]*\pL[^0-9]*$"))
        return bool(words.n_unique() * 2 > len(first))

    @property
    def is_series(self) -> bool:
        """Return True if it has memory over an axis."""
        return self.has_memory and any(recognise(n).part is Part.AXIS for n in self.table.names)


def is_markdown(source: Source) -> bool:
    """Return True if the source has bars and rules, or tables in HTML or of a wiki."""
    has_rules = b"|" in source.content and b"--" in source.content
    return has_rules or _is_html(source) or has_wiki_tables(source.content)


def _is_html(source: Source) -> bool:
    return _HTML_TABLE.search(source.content) is not None


def read_markdown(source: Source, number: int | None) -> Table | None:
    """The document's table of memory over steps, None if it has no table.

    number: which table to take, counted from 1. Raises ReadError if several could be meant
    or none has memory over steps.
    """
    found = _found(source)
    if not found:
        return None
    if number is not None:
        if not 1 <= number <= len(found):
            raise ReadError(
                f"there is no table {number}: the document has {len(found)}",
                source=source.name,
                remedy=_listed(found),
            )
        return _accepted(found[number - 1], source)
    series = [table for table in found if table.is_series]
    if len(series) == 1:
        return _accepted(series[0], source)
    if not series:
        only = _only_with_memory(found)
        return None if only is None else _accepted(only, source)
    raise ReadError(
        f"{len(series)} of its {len(found)} tables hold memory over steps",
        source=source.name,
        line=series[0].line,
        remedy=f"choose one: {_listed(found, only_series=True)}",
    )


def _accepted(found: _Found, source: Source) -> Table:
    if found.refusal:
        raise ReadError(
            found.refusal,
            source=source.name,
            line=found.line,
            remedy="give every row as many cells as the header has names",
        )
    return found.table


def _only_with_memory(found: Sequence[_Found]) -> _Found | None:
    """The one table of memory without an axis: its rows are samples in order, unless they are
    configurations.
    """
    tables = [table for table in found if table.has_memory and not table.has_settings]
    return tables[0] if len(tables) == 1 else None


def tables_in(source: Source) -> str:
    """The document's tables by number and columns, "" if it has none."""
    return _listed(_found(source))


def _found(source: Source) -> list[_Found]:
    if not is_markdown(source):
        return []
    text = source.first_bytes(_MAX_BYTES).decode("utf-8", errors="replace")
    found = _tables(text.split("\n"))
    if _is_html(source):
        page = _Page()
        page.feed(with_html(text))
        page.end_cell()
        found += _with_rows(page.tables)
    if has_wiki_tables(source.content):
        found += _with_rows(wiki_tables(text.split("\n")))
    return found


def _with_rows(tables: Iterable[tuple[int, list[list[str]]]]) -> list[_Found]:
    """Those with a row below the names of the columns."""
    filled = (
        (line, [[cell.strip() for cell in row] for row in rows if row]) for line, rows in tables
    )
    return [
        _Found(line=line, table=_table(rows[0], rows[1:], None))
        for line, rows in filled
        if len(rows) > 1
    ]


def _listed(found: Sequence[_Found], *, only_series: bool = False) -> str:
    rows = [
        f"--table {at} (line {table.line}: {printable(', '.join(table.table.names))[:60]})"
        for at, table in enumerate(found, 1)
        if table.is_series or not only_series
    ]
    return "; ".join(rows[:_ROWS_IN_MESSAGE])


def _tables(lines: Sequence[str]) -> list[_Found]:
    lines = [line.translate(_AS_RULE) if _GRID_RULE.fullmatch(line) else line for line in lines]
    found = []
    at = 1
    while at < len(lines):
        if "|" in lines[at] and _RULE.fullmatch(lines[at]) and "|" in lines[at - 1]:
            rule = lines[at].strip()
            names = _cells(lines[at - 1], rule)
            rows = []
            end = at + 1
            while end < len(lines) and "|" in lines[end]:
                rows.append(_cells(lines[end], rule))
                end += 1
            rows = [row for row in rows if not all(map(_NO_CELL.fullmatch, row))]
            if rows:
                found.append(_below_rule(names, rule, rows, at))
            at = end
        at += 1
    return found


class _Page(HTMLParser):
    """The tables of an HTML page, each with the line of its first row."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[tuple[int, list[list[str]]]] = []
        self._cell: list[str] | None = None  # the texts of the cell that has begun
        self._rows_below: dict[int, int] = {}  # that the cell of a column stands for

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"td", "th", "tr", "table"}:
            self.end_cell()  # end tags of cells may be left out
        if tag == "table":
            self.tables.append((self.getpos()[0], []))
            self._rows_below = {}
        elif self.tables and tag == "tr":
            self._fill()
            self.tables[-1][1].append([])
        elif self.tables and self.tables[-1][1] and tag in {"td", "th"}:
            self._fill()
            row = self.tables[-1][1][-1]
            rows = dict(attrs).get("rowspan") or ""
            self._rows_below[len(row)] = int(rows) - 1 if _ROWS.fullmatch(rows) else 0
            row.append("")
            self._cell = []

    def _fill(self) -> None:
        """Repeat cells of the row above that stand for this one too."""
        rows = self.tables[-1][1]
        if len(rows) < 2:
            return
        row, above = rows[-1], rows[-2][: len(rows[0])]  # of a column of the header
        while len(row) < len(above) and self._rows_below.get(len(row), 0) > 0:
            self._rows_below[len(row)] -= 1
            row.append(above[len(row)])

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th", "tr", "table"}:
            self.end_cell()

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def end_cell(self) -> None:
        """Take what was read of the cell that has begun."""
        if self._cell is not None:
            self.tables[-1][1][-1][-1] = "".join(self._cell)
        self._cell = None


def _below_rule(names: list[str], rule: str, rows: list[list[str]], line: int) -> _Found:
    """The table of a header, the rule below it in this line (from 0), and rows. The rule says
    whether a header with one name fewer than the rows have cells is without the first.
    """
    width = Counter(map(len, rows)).most_common(1)[0][0]
    if len(names) + 1 == width == _columns_of(rule):
        names = ["", *names]
    if len(names) != width:
        refusal = f"its header has {len(names)} cells, and most of its rows have {width}"
        return _Found(line=line, table=_table(names, rows, line + 2), refusal=refusal)
    fitting = [row for row in rows if len(row) <= width]
    table = _table(names, fitting, line + 2)
    if left := len(rows) - len(fitting):
        rows_have = "1 row has" if left == 1 else f"{left} rows have"
        note = f"{rows_have} more cells than the header: left out"
        table = replace(table, first_line=None, notes=(*table.notes, note))
    return _Found(line=line, table=table)


def _columns_of(rule: str) -> int:
    return rule.strip("|").count("|") + 1


def _cells(line: str, rule: str) -> list[str]:
    """Cells of a row, without the markup of bold, code and escaped bars.

    A bar at an end is no border, but stands beside an empty cell, where the rule has none there and
    the row has no cell too many.
    """
    bars = line.strip().replace("\\|", "\0")
    cells = [cell.replace("\0", "|").strip().strip("*`_ ") for cell in bars.split("|")]
    has_more = len(cells) > _columns_of(rule)
    starts = bars.startswith("|") and (has_more or rule.startswith("|"))
    ends = bars.endswith("|") and (has_more or rule.endswith("|"))
    return cells[int(starts) : len(cells) - int(ends)]


def _table(names: list[str], rows: list[list[str]], first_line: int | None) -> Table:
    width = len(names)
    padded = [(row + [""] * width)[:width] for row in rows]
    columns = tuple(
        pl.Series(str(at), [row[at] for row in padded], dtype=pl.String) for at in range(width)
    )
    return upright(Table(names=tuple(names), columns=columns, first_line=first_line))

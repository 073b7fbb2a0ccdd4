"""Boxes printed again and again: of names and values (`| rss_mb | 812 |`), or of one row below
names, as a client of a database prints them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.cells_of_lines import is_number
from memdiag.recording.tables.table import Table

_PAIR = re.compile(r"\s*\|\s*([A-Za-z_][^|]*?)\s*\|\s*([^|]*?)\s*\|\s*")
_RULE = re.compile(r"\s*\+-[-+]*\+\s*")
_BOXES_AT_LEAST = 2


def has_boxes(source: Source) -> bool:
    """Return True if several boxes in the head have a name of memory."""
    lines = source.head().split("\n")
    return _has_memory(_pairs(lines)) or _has_memory(_rows(lines))


def read_boxes(source: Source) -> Table:
    """One row per box, which ends where one of its names comes again."""
    lines = source.all_bytes().decode("utf-8", errors="replace").split("\n")
    cells = _rows(lines) if _has_memory(_rows(lines)) else _pairs(lines)
    rows: list[dict[str, str]] = [{}]
    for name, value in cells:
        if name in rows[-1]:
            rows.append({})
        rows[-1][name] = value
    return Table.of(pl.DataFrame(rows, infer_schema_length=None))


def _has_memory(cells: Iterable[tuple[str, str]]) -> bool:
    names = Counter(name for name, value in cells if any(map(str.isdigit, value)))
    return any(
        often >= _BOXES_AT_LEAST and recognise(name).part is Part.METRIC
        for name, often in names.items()
    )


def _pairs(lines: Sequence[str]) -> Iterable[tuple[str, str]]:
    """The names and values of boxes with one pair in each row.

    A name that says nothing alone has that of its section before it: `replay/size`.
    """
    section = ""
    for line in lines:
        pair = _PAIR.fullmatch(line)
        if pair is None:
            section = ""
        elif pair[2]:
            is_plain = recognise(pair[1]).part is Part.OTHER
            yield section + pair[1] if is_plain else pair[1], pair[2]
        elif pair[1].endswith("/"):
            section = pair[1]


def _rows(lines: Sequence[str]) -> Iterable[tuple[str, str]]:
    """The names and values of boxes with one row below names."""
    rules = {at for at, line in enumerate(lines) if _RULE.fullmatch(line)}
    for at in sorted(rules):
        if {at + 2, at + 4} <= rules and not {at + 1, at + 3} & rules:
            names, values = (_cells(lines[at + n]) for n in (1, 3))
            if len(names) == len(values) and not any(map(is_number, names)):
                yield from zip(names, values, strict=True)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]

"""Numbers without names, one per line, perhaps behind a time, and lists of numbers as Python writes
them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.cells_of_lines import NUMBER, is_moment
from memdiag.recording.tables.csv_dialect import Layout, split_line
from memdiag.recording.tables.table import Table, read_text_table
from memdiag.values.sanitize import printable

_NUMBER = rb"[-+]?[0-9][0-9_]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?"
_NUMBERS = rb"\[\s*(" + _NUMBER + rb"\s*,[-+0-9.,eE_\s]*)\]"
_LIST = re.compile(rb"\s*" + _NUMBERS + rb"\s*;?\s*")
_ASSIGNED = re.compile(
    rb"(?m)^[ \t]*([A-Za-z_][\w.]*)[ \t]*=[ \t]*(?:[A-Za-z_][\w.]*\([ \t]*)?" + _NUMBERS
)
# Of a dictionary, as Keras' `history.history` is printed.
_OF_KEYS = re.compile(rb"[{,]\s{0,8}'([A-Za-z_][\w./-]{0,60})'\s{0,8}:\s{0,8}" + _NUMBERS)
# Of the characters of a text with lists among its lines. Heuristic.
_SHARE = 0.5
# Of text above numbers, and of numbers. Heuristic.
_LINES_ABOVE, _NUMBERS_AT_LEAST = 8, 8
_LONGEST_NAME = 100
_TIME_AND_NUMBER = 2
_ALONE = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
_SIZE = re.compile(rf"{_ALONE.pattern} ?(?:[kKMGT]i?B|bytes)")


def is_list(source: Source) -> bool:
    """Return True if the source begins with a list, or is short and may have one with a name."""
    head = source.content.lstrip()
    if head[:80].split(b"=")[-1].lstrip().startswith(b"["):
        return True
    return source.whole and re.search(rb"[=:][^\n]{0,40}\[\s*[-+0-9]", head) is not None


def read_list(source: Source) -> Table | None:
    """`[75.855, 75.867, ...]`, as memory_profiler's `memory_usage` returns it, or the lists that
    names are assigned, or the keys of a dictionary have, if these are most of the text:
    `steps = [...]`, `rss = [...]`.
    """
    raw = source.all_bytes()
    if (alone := _LIST.fullmatch(raw)) is not None:
        return _of(_numbers(alone[1]))
    found = list(_ASSIGNED.finditer(raw)) or list(_OF_KEYS.finditer(raw))
    if not found or sum(len(one[0]) for one in found) < _SHARE * len(raw):
        return None
    lists = {_with_unit(one[1], raw): _numbers(one[2]) for one in found}
    readings = [name for name in lists if recognise(name).part is Part.METRIC]
    if not readings:
        return _of(next(iter(lists.values()))) if len(lists) == 1 else None
    length = len(lists[readings[0]])
    alike = {name: each for name, each in lists.items() if len(each) == length}
    others = ", ".join(name for name in readings if name not in alike)
    notes = (f"not read, since they have other lengths: {others}",) if others else ()
    return Table(names=tuple(alike), columns=tuple(alike.values()), first_line=None, notes=notes)


def _with_unit(name: bytes, text: bytes) -> str:
    """The name, with the unit that a remark says: `# rss in MiB`."""
    remark = re.search(
        rb"(?i)#.*\b" + re.escape(name) + rb" (?:in |[(\[])((?-i:[KMGT]i?B|bytes))\b", text
    )
    plain = name.decode("ascii", "replace")
    return plain if remark is None else f"{plain} ({remark[1].decode()})"


def _numbers(listed: bytes) -> pl.Series:
    numbers = listed.decode("ascii", "replace").replace("_", "").split(",")
    cells = pl.Series([one.strip() for one in numbers if one.strip()], dtype=pl.String)
    plain: pl.Series = cells.cast(pl.Float64, strict=False)
    return plain


def read_bare(source: Source, layout: Layout) -> Table:
    """One number per line."""
    return _of(read_text_table(source, layout).series[0])


def has_numbers_below(source: Source) -> bool:
    """Return True for numbers, all or none with a unit, one per line, below a few lines of text, if
    these or the name of the file say memory.
    """
    lines = [line.strip() for line in source.head().split("\n") if line.strip()]
    lines = lines if source.whole else lines[:-1]
    are_sizes = any(map(_SIZE.fullmatch, lines))
    numbers = [(_SIZE if are_sizes else _ALONE).fullmatch(line) is not None for line in lines]
    above = numbers.index(True) if any(numbers) else 0
    if not 0 < above <= _LINES_ABOVE or len(lines) < above + _NUMBERS_AT_LEAST:
        return False
    names = [_name_of(source), *lines[:above]]
    return all(numbers[above:]) and any(
        recognise(name[:_LONGEST_NAME]).part is Part.METRIC for name in names
    )


def read_below(source: Source) -> Table:
    """The numbers, or the sizes, that are alone on their lines."""
    lines = source.all_bytes().decode("utf-8", errors="replace").split("\n")
    if sizes := [line for line in map(str.strip, lines) if _SIZE.fullmatch(line)]:
        return _of(pl.Series(sizes))
    numbers = [float(line) for line in map(str.strip, lines) if _ALONE.fullmatch(line)]
    return _of(pl.Series(numbers, dtype=pl.Float64))


def _of(readings: pl.Series) -> Table:
    return Table(names=("memory",), columns=(readings,), first_line=1)


def is_timed(source: Source, layout: Layout) -> bool:
    """Return True for rows of a time and a number without a header, `2024-10-10T09:30:00 81264640`,
    if the name of the file says memory.
    """
    if recognise(_name_of(source)).part is not Part.METRIC:
        return False
    lines = [line for line in source.head().split("\n") if line.strip()]
    lines = lines if source.whole else lines[:-1]
    rows = [split_line(line, layout.delimiter) for line in lines]
    are_pairs = len(rows) >= _NUMBERS_AT_LEAST and all(len(row) == _TIME_AND_NUMBER for row in rows)
    return are_pairs and all(is_moment(one) and NUMBER.fullmatch(other) for one, other in rows)


def read_timed(source: Source, layout: Layout) -> Table:
    """A time and a number per line, with the name of the file for that of the numbers."""
    name = _name_of(source)
    table = read_text_table(source, replace(layout, names=("time", name)))
    note = f"the numbers are taken for {printable(name)}, by the name of the file"
    return replace(table, notes=(*table.notes, note))


def _name_of(source: Source) -> str:
    return PurePath(source.name).stem[:_LONGEST_NAME]

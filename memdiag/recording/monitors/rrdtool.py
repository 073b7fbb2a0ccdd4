"""What `rrdtool fetch` prints: names of the sources, and `1719792000: 5.3027e+09 -nan` below."""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import all_lines
from memdiag.recording.tables.table import Table

_ROW = re.compile(r"([0-9]{9,11}):((?:\s+(?:-?nan|[-+]?[0-9.]+(?:e[-+][0-9]+)?))+)\s*", re.I)
_ROWS_AT_LEAST = 3
_TIME = "timestamp"
# The sources of a database of memory, as collectd makes them.
_OF_MEMORY = frozenset(("used", "free", "cached"))


def is_fetch(source: Source) -> bool:
    """Return True if the first lines are names, and rows with as many values."""
    names, *rows = [line for line in source.head().split("\n") if line.strip()] or [""]
    first = rows[:_ROWS_AT_LEAST]
    return len(first) == _ROWS_AT_LEAST and all(_cells(line, names.split()) for line in first)


def read_fetch(source: Source) -> Table:
    """A row per moment; without those of which all values are missing."""
    names, *lines = [line for line in all_lines(source) if line.strip()]
    sources = names.split()
    rows = [cells for line in lines if (cells := _cells(line, sources))]
    prefix = "mem_" if _OF_MEMORY.issubset(sources) else ""
    columns = [pl.Series(cells, dtype=pl.String) for cells in zip(*rows, strict=True)]
    shown = (_TIME, *(f"{prefix}{name}" for name in sources))
    return Table(names=shown, columns=tuple(columns), first_line=None)


def _cells(line: str, sources: list[str]) -> list[str]:
    """The time and the values of a row, [] of other lines."""
    found = _ROW.fullmatch(line)
    values = found[2].split() if found is not None else []
    return [found[1], *values] if found is not None and len(values) == len(sources) else []

"""Numbers without names: one per line, or a list as Python prints it."""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.csv_dialect import Layout
from memdiag.recording.tables.table import Table, read_text_table

_NUMBER = rb"[-+]?[0-9][0-9_]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?"
_LIST = re.compile(
    rb"\s*(?:[A-Za-z_][\w.]*\s*=\s*)?\[\s*" + _NUMBER + rb"\s*,[-+0-9.,eE_\s]*\]\s*;?\s*"
)


def is_list(source: Source) -> bool:
    """Return True if the source begins with a list, which may be assigned to a name."""
    return source.content.lstrip()[:80].split(b"=")[-1].lstrip().startswith(b"[")


def read_list(source: Source) -> Table | None:
    """`[75.855, 75.867, ...]`, as memory_profiler's `memory_usage` returns it."""
    raw = source.all_bytes()
    if _LIST.fullmatch(raw) is None:
        return None
    inside = raw[raw.index(b"[") + 1 : raw.rindex(b"]")].replace(b"_", b"")
    numbers = [float(number) for number in inside.split(b",") if number.strip()]
    return _of(pl.Series(numbers, dtype=pl.Float64))


def read_bare(source: Source, layout: Layout) -> Table:
    """One number per line."""
    return _of(read_text_table(source, layout).series[0])


def _of(readings: pl.Series) -> Table:
    return Table(names=("memory",), columns=(readings,), first_line=1)

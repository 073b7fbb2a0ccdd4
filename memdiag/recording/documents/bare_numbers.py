"""Figures without names: one per line, or a list as Python prints it."""

from __future__ import annotations

import re

import numpy as np

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.csv_dialect import Layout
from memdiag.recording.tables.table import Table, read_text_table

_FIGURE = rb"[-+]?[0-9][0-9_]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?"
_LIST = re.compile(
    rb"\s*(?:[A-Za-z_][\w.]*\s*=\s*)?\[\s*" + _FIGURE + rb"\s*,[-+0-9.,eE_\s]*\]\s*;?\s*"
)
_NAME = "memory"


def read_list(source: Source) -> Table | None:
    """`[75.855, 75.867, ...]`, as memory_profiler's `memory_usage` returns it."""
    if not source.content.lstrip()[:80].split(b"=")[-1].lstrip().startswith(b"["):
        return None
    raw = source.all_bytes()
    if _LIST.fullmatch(raw) is None:
        return None
    inside = raw[raw.index(b"[") + 1 : raw.rindex(b"]")].replace(b"_", b"")
    figures = [float(figure) for figure in inside.split(b",") if figure.strip()]
    return _as_table(pl.Series(_NAME, figures, dtype=pl.Float64))


def read_bare(source: Source, layout: Layout) -> Table:
    """One figure per line."""
    table = read_text_table(source, layout)
    return _as_table(table.series[0])


def _as_table(figures: pl.Series) -> Table:
    samples = pl.Series("sample", np.arange(len(figures)))
    return Table(names=("sample", _NAME), columns=(samples, figures), first_line=1)

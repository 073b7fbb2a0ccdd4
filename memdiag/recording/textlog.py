"""Training logs as text: numbers with names somewhere in the lines, read column by column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from memdiag.errors import UnreadableInput, UsageError
from memdiag.model import Unit
from memdiag.printable import printable
from memdiag.recording.clocks import since_first
from memdiag.recording.columns import Part
from memdiag.recording.fields import LEADING, Field, find_fields
from memdiag.recording.forms import lines_of
from memdiag.recording.gathering import ROWS_AT_MOST, Gatherer
from memdiag.recording.lines import blocks, chunks, stamped
from memdiag.recording.searching import ANY_TAG
from memdiag.recording.shapes import find_shape
from memdiag.recording.source import Source
from memdiag.recording.table import Table

_LOOKED_AT = 600
_ROWS_AT_LEAST = 4
_LEAST_EPOCH_S = 1e8  # in 1973
# An axis moves on in so many of its steps; it may stay, and start again.
_ONWARDS = 0.6
# Where nothing gives the lines an order, figures of memory must stand in so many of them; prose
# about memory has figures as well.
_DENSE = 0.2
_MEMORY_HINT = r"(?i)mem|rss|ram|heap|alloc|tensor|[0-9]\s?[KMGT]i?B?\b|[0-9]\s?bytes|uss|pss|vms"
# YOLO's heading, above lines that begin with `7/100`.
_OF_EPOCHS = re.compile(rb"Epoch {2,}[A-Za-z_]+ {2,}[A-Za-z_]")
_SPARED = f"of more than {ROWS_AT_MOST:,} lines with figures those with the extremes were kept"


def read_text(source: Source) -> Table | None:
    """The table that a log holds, None where its lines hold no memory, or too little for a log."""
    gatherer: Gatherer | None = None
    filled = 0
    for block in blocks(source):
        lines = lines_of(block)
        filled += len(lines.starts)
        gatherer = gatherer or _understood(block)
        if gatherer is not None:
            gatherer.read(lines)
    if gatherer is None:
        return None
    table = _as_table(gatherer.frame(), gatherer.fields, filled)
    return table if table is None or not gatherer.coarseness else replace(table, notes=(_SPARED,))


def _understood(block: bytes) -> Gatherer | None:
    """Knows the fields of these lines, and a shape that many of them have and that has no tags."""
    lines = stamped(block)["line"]
    looked_at = _to_look_at(lines.filter(lines.str.contains("[0-9]")))
    fields = find_fields(looked_at, "epoch" if _OF_EPOCHS.search(block) else "iteration")
    if not fields:
        return None
    shape = find_shape(looked_at, fields)
    tagged = shape is not None and re.search(ANY_TAG, shape.pattern)
    return Gatherer(fields, None if tagged else shape)


def _to_look_at(lines: pl.Series) -> Sequence[str]:
    """Lines to find the fields on: those that speak of memory, or any if too few do."""
    hinted = lines.filter(lines.str.contains(_MEMORY_HINT))
    chosen = hinted if len(hinted) * 20 >= len(lines) or len(hinted) >= 20 else lines
    if len(chosen) > _LOOKED_AT:
        chosen = chosen.gather_every(len(chosen) // _LOOKED_AT + 1)
    others = lines.head(_LOOKED_AT // 2) if chosen is hinted else lines.clear()
    return [line for line in pl.concat([chosen, others]).to_list() if line]


def read_pattern(source: Source, pattern: str) -> Table:
    """The table of a pattern's named groups: one row per line that matches."""
    names = list(re.findall(r"\(\?P?<([A-Za-z_]\w*)>", pattern))
    if not names:
        raise UsageError(
            "the pattern has no named groups",
            remedy=r"name what it finds: --pattern 'step (?<step>\d+).*rss (?<rss_mb>[\d.]+)'",
        )
    try:
        parts = [
            chunk["line"].str.extract_groups(pattern).struct.unnest().drop_nulls(names[:1])
            for chunk in chunks(source)
        ]
    except pl.exceptions.PolarsError as error:
        raise UsageError(
            f"the pattern is no regular expression: {printable(str(error))[:120]}",
            remedy="look-around and back-references are not supported",
        ) from error
    frame = pl.concat(parts)
    if frame.is_empty():
        raise UnreadableInput(
            "the pattern matches no line", source=source.name, remedy="test it on one of its lines"
        )
    columns = tuple(frame[name] for name in names)
    return Table(names=tuple(names), columns=columns, first_line=None)


def _as_table(frame: pl.DataFrame, fields: Sequence[Field], lines: int) -> Table | None:
    metrics = [f"field {n}" for n, f in enumerate(fields) if f.meaning.part is Part.METRIC]
    axes = [f"field {n}" for n, f in enumerate(fields) if f.meaning.part is Part.AXIS]
    has_metric = _have_any(frame, metrics)
    own = [name for name in axes if _leads(_those(frame[name].to_frame(), has_metric)[name])]
    carried = () if own else axes  # a position that a line names holds for the lines below it
    rows = _those(frame.with_columns(pl.col(carried).forward_fill()), has_metric)
    if own:  # a figure beside no position is not one of the series
        rows = _those(rows, _have_any(rows, own))
    most = max((len(rows) - rows[name].null_count() for name in metrics), default=0)
    carrying = [name for name in axes if not own and _fills_half(rows[name])]
    is_ordered = bool(own) or _fills_half(rows["stamp"])
    if most < _ROWS_AT_LEAST or (not is_ordered and len(rows) < _DENSE * lines):
        return None
    return _named(rows, [*(own or carrying), *metrics], fields)


def _have_any(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    return frame.select(pl.any_horizontal(pl.col(names).is_not_null()).alias("any")).to_series()


def _those(rows: pl.DataFrame, wanted: pl.Series) -> pl.DataFrame:
    """(Nothing is copied where all are wanted, as in most logs.)"""
    return rows if wanted.all() else rows.filter(wanted)


def _leads(column: pl.Series) -> bool:
    """It stands beside most readings and moves on from one to the next, most of the time."""
    moves = _positions(column).drop_nulls().diff().drop_nulls()
    onwards = int((moves > 0).sum())
    return _fills_half(column) and onwards >= 2 and onwards >= _ONWARDS * len(moves)


def _fills_half(column: pl.Series) -> bool:
    return column.null_count() * 2 < len(column)


def _named(rows: pl.DataFrame, chosen: Sequence[str], fields: Sequence[Field]) -> Table:
    names, columns = [], []
    for name in chosen:
        field = fields[int(name.split()[1])]
        column = rows[name]
        leads = field.name == LEADING
        names.append("timestamp" if leads and _is_clock(column) else _column_name(field))
        columns.append(_positions(column) if leads else column)
    for name in ("stamp", "phase", "pid", "rank"):
        if name in rows.columns and rows[name].null_count() < len(rows):
            is_stamp = name == "stamp"
            names.append("timestamp" if is_stamp else name)
            columns.append(
                pl.Series(since_first(rows[name].to_numpy())) if is_stamp else rows[name]
            )
    return Table(names=tuple(names), columns=tuple(columns), first_line=None)


def _is_clock(leading: pl.Series) -> bool:
    """Seconds since 1970, or parts of them, as `date +%s` prints."""
    least = leading.min()
    return isinstance(least, int | float) and least >= _LEAST_EPOCH_S


def _positions(leading: pl.Series) -> pl.Series:
    """A number at the start of each line counts samples, or says how often the line came.

    `uniq -c` puts it there: then the lines before it have filled so many places.
    """
    if leading.is_sorted() or leading.has_nulls():
        return leading
    places: pl.Series = leading.cum_sum() - leading
    return places


def _column_name(field: Field) -> str:
    """Figures whose unit stood behind them are in bytes now."""
    label, _, _ = field.name.rpartition("(")
    if field.scaled and field.meaning.unit is Unit.BYTES and label.strip():
        return f"{label.strip()} (bytes)"
    return field.name

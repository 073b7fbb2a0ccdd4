"""Training logs as text: numbers with names somewhere in the lines, read column by column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from memdiag.errors import UnreadableInput, UsageError
from memdiag.recording.inputs.lines import LINE_LIMIT, blocks, chunks, split_stamp, stamped
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part
from memdiag.recording.parsing.timestamps import since_first
from memdiag.recording.tables.table import Table
from memdiag.recording.textlog.discover_fields import LEADING, Field, find_fields
from memdiag.recording.textlog.extract_blocks import ROWS_AT_MOST, Found, Gatherer
from memdiag.recording.textlog.line_templates import Lines, lines_of
from memdiag.recording.textlog.search_lines import TAGS
from memdiag.values.measurements import Unit
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.recording.lazy_polars import Column
    from memdiag.values.measurements import Floats

_LOOKED_AT = 600
_ROWS_AT_LEAST = 4
_LEAST_EPOCH_S = 1e8  # in 1973
# An axis moves on in so many of its steps; it may stay, and start again.
_ONWARDS = 0.6
# Where nothing gives the lines an order, figures of memory must stand in so many of them; prose
# about memory has figures as well.
_DENSE = 0.2
_HINT = r"(?i)mem|rss|ram|heap|alloc|tensor|[0-9]\s?[KMGT]i?B?\b|[0-9]\s?bytes|uss|pss|vms"
_DIGIT = "[0-9]"
_FORMS_AT_MOST = 4000
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
        gatherer = gatherer or _understood(lines)
        if gatherer is not None:
            gatherer.read(lines)
    if gatherer is None:
        return None
    table = _as_table(gatherer, filled)
    return table if table is None or not gatherer.coarseness else replace(table, notes=(_SPARED,))


def _understood(lines: Lines) -> Gatherer | None:
    of_so_many = "epoch" if _OF_EPOCHS.search(lines.raw) else "iteration"
    fields = find_fields(_to_look_at(lines), of_so_many)
    return Gatherer(fields) if fields else None


def _to_look_at(lines: Lines) -> Sequence[str]:
    """Lines to find the fields on: those that speak of memory, or any if too few do."""
    forms = [form for form in lines.zeroed().split(b"\n") if form]
    with_figures, of_memory = _telling(list(set(forms)))
    told = [n for n, form in enumerate(forms) if form in with_figures]
    hinted = [n for n in told if forms[n] in of_memory]
    chosen = hinted if len(hinted) * 20 >= len(told) or len(hinted) >= 20 else told
    others = told[: _LOOKED_AT // 2] if chosen is hinted and len(chosen) <= _LOOKED_AT else []
    if len(chosen) > _LOOKED_AT:
        chosen = chosen[:: len(chosen) // _LOOKED_AT + 1]
    return [_without_stamp(lines.line(n)) for n in (*chosen, *others)]


def _telling(forms: Sequence[bytes]) -> tuple[set[bytes], set[bytes]]:
    """The forms of lines that hold figures, and of those the ones that speak of memory."""
    if len(forms) > _FORMS_AT_MOST:  # polars sees to many in less time, but takes some to start
        texts = stamped(b"\n".join(forms))["line"]
        told, hinted = texts.str.contains(_DIGIT).to_list(), texts.str.contains(_HINT).to_list()
    else:
        each = list(map(_without_stamp, forms))
        told, hinted = ([re.search(p, text) is not None for text in each] for p in (_DIGIT, _HINT))
    with_figures = set(compress(forms, told))
    return with_figures, with_figures & set(compress(forms, hinted))


def _without_stamp(line: bytes) -> str:
    return split_stamp(line.decode("utf-8", errors="replace")[:LINE_LIMIT]).line


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


def _as_table(gatherer: Gatherer, lines: int) -> Table | None:
    found, fields = gatherer.gathered(), gatherer.fields
    metrics = [n for n, f in enumerate(fields) if f.meaning.part is Part.METRIC]
    axes = [n for n, f in enumerate(fields) if f.meaning.part is Part.AXIS]
    wanted = _have_any(found, metrics)
    own = [n for n in axes if _leads(_those(found.figures[n], wanted))]
    for n in () if own else axes:  # a position that a line names holds for the lines below it
        _carry_on(found.figures[n])
    if own:  # a figure beside no position is not one of the series
        wanted &= _have_any(found, own)
    rows = found if wanted.all() else found.of(np.flatnonzero(wanted))
    most = max((int((~np.isnan(rows.figures[n])).sum()) for n in metrics), default=0)
    carrying = [n for n in axes if not own and _fills_half(rows.figures[n])]
    is_ordered = bool(own) or _fills_half(rows.stamps)
    if most < _ROWS_AT_LEAST or (not is_ordered and len(rows.stamps) < _DENSE * lines):
        return None
    return _named(gatherer, rows, [*(own or carrying), *metrics])


def _have_any(found: Found, fields: Sequence[int]) -> NDArray[np.bool_]:
    """The lines with a figure of one of these fields."""
    has_it = np.zeros(len(found.stamps), dtype=bool)
    for n in fields:
        has_it |= ~np.isnan(found.figures[n])
    return has_it


def _those(figures: Floats, wanted: NDArray[np.bool_]) -> Floats:
    """(Nothing is copied where all are wanted, as in most logs.)"""
    return figures if wanted.all() else figures[wanted]


def _carry_on(figures: Floats) -> None:
    """In the place of each that is missing the one before it."""
    named = np.maximum.accumulate(np.where(np.isnan(figures), 0, np.arange(len(figures))))
    figures[:] = figures[named]


def _leads(figures: Floats) -> bool:
    """It stands beside most readings and moves on from one to the next, most of the time."""
    positions = _positions(figures)
    with np.errstate(invalid="ignore"):
        moves = np.diff(positions[~np.isnan(positions)])
    onwards = int((moves > 0).sum())
    return _fills_half(figures) and onwards >= 2 and onwards >= _ONWARDS * len(moves)


def _fills_half(figures: Floats) -> bool:
    return int(np.isnan(figures).sum()) * 2 < len(figures)


def _named(gatherer: Gatherer, rows: Found, chosen: Sequence[int]) -> Table:
    names: list[str] = []
    columns: list[Column] = []
    for n in chosen:
        field, figures = gatherer.fields[n], rows.figures[n]
        leads = field.name == LEADING
        names.append("timestamp" if leads and _is_clock(figures) else _column_name(field))
        columns.append(_positions(figures) if leads else figures)
    if not np.isnan(rows.stamps).all():
        names.append("timestamp")
        columns.append(since_first(rows.stamps))
    for name in TAGS:
        if name in rows.tags and (rows.tags[name] >= 0).any():
            names.append(name)
            columns.append(gatherer.tags(name, rows.tags[name]))
    return Table(names=tuple(names), columns=tuple(columns), first_line=None)


def _is_clock(leading: Floats) -> bool:
    """Seconds since 1970, or parts of them, as `date +%s` prints."""
    seen = leading[~np.isnan(leading)]
    return seen.size > 0 and bool(seen.min() >= _LEAST_EPOCH_S)


def _positions(leading: Floats) -> Floats:
    """A number at the start of each line counts samples, or says how often the line came.

    `uniq -c` puts it there: then the lines before it have filled so many places.
    """
    if np.isnan(leading).any() or bool((leading[1:] >= leading[:-1]).all()):
        return leading
    with np.errstate(invalid="ignore"):  # of "1e999"
        return np.cumsum(leading) - leading


def _column_name(field: Field) -> str:
    """Figures whose unit stood behind them are in bytes now."""
    label, _, _ = field.name.rpartition("(")
    if field.scaled and field.meaning.unit is Unit.BYTES and label.strip():
        return f"{label.strip()} (bytes)"
    return field.name

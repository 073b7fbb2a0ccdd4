"""Reads training logs as text: named numbers somewhere in the lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress, islice
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
from memdiag.recording.textlog.extract_blocks import ROWS_AT_MOST, Collector, Found
from memdiag.recording.textlog.line_templates import Lines, lines_of
from memdiag.recording.textlog.search_lines import TAGS
from memdiag.recording.textlog.unread_sizes import left_out
from memdiag.values.measurements import Unit
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.recording.lazy_polars import Column
    from memdiag.values.measurements import Floats

_LOOKED_AT = 600
_ROWS_AT_LEAST = 4
_LEAST_EPOCH_S = 1e8  # in 1973
# An axis increases in this share of its steps; it may also stay or restart.
_ONWARDS = 0.6
# Without an axis, this share of the lines must have memory values: prose about memory has numbers
# too.
_DENSE = 0.2
_HINT = r"(?i)mem|rss|ram|heap|alloc|tensor|[0-9]\s?[KMGT]i?B?\b|[0-9]\s?bytes|uss|pss|vms"
_DIGIT = "[0-9]"
_COMMA = re.compile(rb"(?<=[0-9]),(?=[0-9])")
_COMMA_SIZE = re.compile(rb"[0-9],[0-9]{1,2} ?[KMGTkmgt]i?[Bb]\b")
_POINT_SIZE = re.compile(rb"[0-9]\.[0-9]+ ?[KMGTkmgt]i?[Bb]\b")
_FORMS_AT_MOST = 4000
_FORMS_NOTED = 500
# YOLO's heading, above lines that begin with `7/100`.
_OF_EPOCHS = re.compile(rb"Epoch {2,}[A-Za-z_]+ {2,}[A-Za-z_]")
_DECIMATED = f"of more than {ROWS_AT_MOST:,} lines with values those with the extremes were kept"


def read_text(source: Source) -> Table | None:
    """The table in a log, None if its lines have no memory values, or too few."""
    collector: Collector | None = None
    filled = 0
    notes: tuple[str, ...] = ()
    decimal_commas: bool | None = None
    for block in blocks(source):
        if decimal_commas is None:
            decimal_commas = _has_decimal_commas(block)
        lines = lines_of(_COMMA.sub(b".", block) if decimal_commas else block)
        filled += len(lines.starts)
        if collector is None and (collector := _collector_for(lines)) is not None:
            notes = left_out(_each_of_memory(lines), collector.fields)
        if collector is not None:
            collector.read(lines)
    if collector is None:
        return None
    table = _as_table(collector, filled, source)
    if table is None:
        return None
    return replace(table, notes=(*notes, _DECIMATED) if collector.coarseness else notes)


def _has_decimal_commas(block: bytes) -> bool:
    """Return True if several sizes have one or two decimals after a comma, and none has a point."""
    sizes = len(_COMMA_SIZE.findall(block))
    return sizes >= _ROWS_AT_LEAST and _POINT_SIZE.search(block) is None


def _collector_for(lines: Lines) -> Collector | None:
    counted = "epoch" if _OF_EPOCHS.search(lines.raw) else "iteration"
    fields = find_fields(_to_look_at(lines), counted)
    return Collector(fields) if fields else None


def _to_look_at(lines: Lines) -> Sequence[str]:
    """Lines to find the fields on: those that mention memory, or any if too few do."""
    forms = [form for form in lines.zeroed().split(b"\n") if form]
    with_numbers, of_memory = _relevant(list(set(forms)))
    numbered = [n for n, form in enumerate(forms) if form in with_numbers]
    hinted = [n for n in numbered if forms[n] in of_memory]
    chosen = hinted if len(hinted) * 20 >= len(numbered) or len(hinted) >= 20 else numbered
    others = numbered[: _LOOKED_AT // 2] if chosen is hinted and len(chosen) <= _LOOKED_AT else []
    if len(chosen) > _LOOKED_AT:
        chosen = chosen[:: len(chosen) // _LOOKED_AT + 1]
    return [_without_stamp(lines.line(n)) for n in (*chosen, *others)]


def _each_of_memory(lines: Lines) -> Iterator[str]:
    """One line of each form that mentions memory, in their order."""
    first: dict[bytes, int] = {}
    forms = (form for form in lines.zeroed().split(b"\n") if form)
    for n, form in enumerate(forms):
        first.setdefault(form, n)
    _, of_memory = _relevant(list(first))
    chosen = (n for form, n in first.items() if form in of_memory)
    return (_without_stamp(lines.line(n)) for n in islice(chosen, _FORMS_NOTED))


def _relevant(forms: Sequence[bytes]) -> tuple[set[bytes], set[bytes]]:
    """The forms of lines with numbers, and those of them that mention memory."""
    if len(forms) > _FORMS_AT_MOST:  # polars is faster for many, but slow to start
        texts = stamped(b"\n".join(forms))["line"]
        numbered, hinted = texts.str.contains(_DIGIT).to_list(), texts.str.contains(_HINT).to_list()
    else:
        each = list(map(_without_stamp, forms))
        numbered, hinted = (
            [re.search(p, text) is not None for text in each] for p in (_DIGIT, _HINT)
        )
    with_numbers = set(compress(forms, numbered))
    return with_numbers, with_numbers & set(compress(forms, hinted))


def _without_stamp(line: bytes) -> str:
    return split_stamp(line.decode("utf-8", errors="replace")[:LINE_LIMIT]).line


def read_pattern(source: Source, pattern: str) -> Table:
    """The table of a pattern's named groups: one row per line that matches."""
    names = list(re.findall(r"\(\?P?<([A-Za-z_]\w*)>", pattern))
    if not names:
        raise UsageError(
            "the pattern has no named groups",
            remedy=r"name its groups: --pattern 'step (?<step>\d+).*rss (?<rss_mb>[\d.]+)'",
        )
    try:
        parts = [
            chunk["line"].str.extract_groups(pattern).struct.unnest().drop_nulls(names[:1])
            for chunk in chunks(source)
        ]
    except pl.exceptions.PolarsError as error:
        raise UsageError(
            f"invalid regular expression: {printable(str(error))[:120]}",
            remedy="look-around and back-references are not supported",
        ) from error
    frame = pl.concat(parts)
    if frame.is_empty():
        raise UnreadableInput(
            "the pattern matches no line", source=source.name, remedy="test it on one of its lines"
        )
    columns = tuple(frame[name] for name in names)
    return Table(names=tuple(names), columns=columns, first_line=None)


def _as_table(collector: Collector, lines: int, source: Source) -> Table | None:
    found, fields = collector.collected(), collector.fields
    metrics = [n for n, f in enumerate(fields) if f.meaning.part is Part.METRIC]
    axes = [n for n, f in enumerate(fields) if f.meaning.part is Part.AXIS]
    wanted = _have_any(found, metrics)
    own = [n for n in axes if _leads(_those(found.values[n], wanted))]
    for n in () if own else axes:  # a position on its own line applies to the lines below
        _carry_on(found.values[n])
    if own:  # a value without a position does not belong to the series
        wanted &= _have_any(found, own)
    rows = found if wanted.all() else found.of(np.flatnonzero(wanted))
    most = max((int((~np.isnan(rows.values[n])).sum()) for n in metrics), default=0)
    carrying = [n for n in axes if not own and _fills_half(rows.values[n])]
    is_ordered = bool(own) or _fills_half(rows.stamps)
    if own and 0 < most < _ROWS_AT_LEAST:
        raise UnreadableInput(
            f"no memory readings over enough steps: only {most} lines have them",
            source=source.name,
            remedy=f"paste at least {_ROWS_AT_LEAST} such lines",
        )
    if most < _ROWS_AT_LEAST or (not is_ordered and len(rows.stamps) < _DENSE * lines):
        return None
    return _named(collector, rows, [*(own or carrying), *metrics])


def _have_any(found: Found, fields: Sequence[int]) -> NDArray[np.bool_]:
    """The lines with a value of one of these fields."""
    has_it = np.zeros(len(found.stamps), dtype=bool)
    for n in fields:
        has_it |= ~np.isnan(found.values[n])
    return has_it


def _those(readings: Floats, wanted: NDArray[np.bool_]) -> Floats:
    """The wanted values (without a copy if all are wanted, as in most logs)."""
    return readings if wanted.all() else readings[wanted]


def _carry_on(readings: Floats) -> None:
    """Replace each missing value by the one before it."""
    named = np.maximum.accumulate(np.where(np.isnan(readings), 0, np.arange(len(readings))))
    readings[:] = readings[named]


def _leads(readings: Floats) -> bool:
    """Return True if most readings have a position, and it mostly increases."""
    positions = _positions(readings)
    with np.errstate(invalid="ignore"):
        moves = np.diff(positions[~np.isnan(positions)])
    onwards = int((moves > 0).sum())
    return _fills_half(readings) and onwards >= 2 and onwards >= _ONWARDS * len(moves)


def _fills_half(readings: Floats) -> bool:
    return int(np.isnan(readings).sum()) * 2 < len(readings)


def _named(collector: Collector, rows: Found, chosen: Sequence[int]) -> Table:
    names: list[str] = []
    columns: list[Column] = []
    for n in chosen:
        field, readings = collector.fields[n], rows.values[n]
        leads = field.name == LEADING
        names.append("timestamp" if leads and _is_clock(readings) else _column_name(field))
        columns.append(_positions(readings) if leads else readings)
    if not np.isnan(rows.stamps).all():
        names.append("timestamp")
        columns.append(since_first(rows.stamps))
    for name in TAGS:
        if name in rows.tags and (rows.tags[name] >= 0).any():
            names.append(name)
            columns.append(collector.tags(name, rows.tags[name]))
    return Table(names=tuple(names), columns=tuple(columns), first_line=None)


def _is_clock(leading: Floats) -> bool:
    """Return True for seconds since 1970, or parts of them, as `date +%s` prints."""
    seen = leading[~np.isnan(leading)]
    return seen.size > 0 and bool(seen.min() >= _LEAST_EPOCH_S)


def _positions(leading: Floats) -> Floats:
    """A number at the start of each line counts samples, or repetitions of the line (`uniq -c`),
    whose positions are then the sums of the counts before.
    """
    if np.isnan(leading).any() or bool((leading[1:] >= leading[:-1]).all()):
        return leading
    with np.errstate(invalid="ignore"):  # of "1e999"
        return np.cumsum(leading) - leading


def _column_name(field: Field) -> str:
    """The name of a column; values that had a unit are in bytes now."""
    label, _, _ = field.name.rpartition("(")
    if field.scaled and field.meaning.unit is Unit.BYTES and label.strip():
        return f"{label.strip()} (bytes)"
    return field.name

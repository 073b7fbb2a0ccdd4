"""Training logs as text: numbers with names somewhere in the lines, read column by column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import polars as pl

from memdiag import units
from memdiag.errors import UnreadableInput, UsageError
from memdiag.model import Unit
from memdiag.printable import printable
from memdiag.recording.columns import Part
from memdiag.recording.fields import LEADING, Field, find_fields
from memdiag.recording.lines import chunks, in_order
from memdiag.recording.shapes import Shape, find_shape
from memdiag.recording.source import Source
from memdiag.recording.table import Table

_LOOKED_AT = 600
_ROWS_AT_LEAST = 4
# An axis moves on in so many of its steps; it may stay, and start again.
_ONWARDS = 0.6
# Where nothing gives the lines an order, figures of memory must stand in so many of them; prose
# about memory has figures as well.
_DENSE = 0.2
_MEMORY_HINT = r"(?i)mem|rss|ram|heap|alloc|tensor|[0-9]\s?[KMGT]i?B?\b|[0-9]\s?bytes|uss|pss|vms"

_PHASE = (
    r"(?i)\bphase(?: transition)?\b\W*(?:\w+\s*(?:->|→|=>)\s*)?([A-Za-z_][\w-]*)",
    r"(?i)\b(?:stage|mode|split)\s*[:=]\s*\W?([A-Za-z_][\w-]*)",
)
_ANY_TAG = "(?i)phase|stage|mode|split|pid|process|rank"
_PID = r"(?i)\b(?:pid|process(?: id)?)\b[ :=#(]{1,3}([0-9]{2,10})\b"
_RANK = r"(?i)rank[ :=#\[]{0,3}([0-9]{1,6})\b"


def read_text(source: Source) -> Table | None:
    """The table that a log holds, None where its lines hold no memory, or too little for a log."""
    fields: list[Field] = []
    shape: Shape | None = None
    parts: list[pl.DataFrame] = []
    lines = 0
    # While one chunk is searched, the next is read.
    with ThreadPoolExecutor(max_workers=1) as beside:
        searched: Future[pl.DataFrame] | None = None
        for chunk in chunks(source):
            numbered, filled = _with_digits(chunk)
            lines += filled
            if not fields:
                fields, shape = _understood(numbered["line"])
            if searched is not None:
                parts.append(searched.result())
            searched = beside.submit(_extracted, numbered, fields, shape) if fields else None
        if searched is not None:
            parts.append(searched.result())
    return _as_table(pl.concat(parts, how="diagonal"), fields, lines) if parts else None


def _with_digits(chunk: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The lines with digits, and how many hold anything."""
    has_it = chunk["line"].str.contains("[0-9]")
    others = chunk["line"].filter(~has_it).str.contains(r"\S")
    return _those(chunk, has_it), int(has_it.sum() + others.sum())


def _understood(lines: pl.Series) -> tuple[list[Field], Shape | None]:
    """The fields of these lines, and a shape that many of them have and that holds no tags."""
    looked_at = _to_look_at(lines)
    fields = find_fields(looked_at)
    shape = find_shape(looked_at, fields) if fields else None
    tagged = shape is not None and re.search(_ANY_TAG, shape.pattern)
    return fields, None if tagged else shape


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
            "the pattern matches no line", source=source.name, remedy="try it on one line first"
        )
    columns = tuple(frame[name] for name in names)
    return Table(names=tuple(names), columns=columns, first_line=None)


def _to_look_at(lines: pl.Series) -> Sequence[str]:
    """Lines to find the fields on: those that speak of memory, or any if too few do."""
    hinted = lines.filter(lines.str.contains(_MEMORY_HINT))
    chosen = hinted if len(hinted) * 20 >= len(lines) or len(hinted) >= 20 else lines
    if len(chosen) > _LOOKED_AT:
        chosen = chosen.gather_every(len(chosen) // _LOOKED_AT + 1)
    others = lines.head(_LOOKED_AT // 2) if chosen is hinted else lines.clear()
    return [line for line in pl.concat([chosen, others]).to_list() if line]


def _extracted(lines: pl.DataFrame, fields: Sequence[Field], shape: Shape | None) -> pl.DataFrame:
    """One row per line with a number; a column per field, and the tags where there are any."""
    if shape is None:
        return _searched(lines, fields)
    groups = lines["line"].str.extract_groups(shape.pattern).struct.unnest().get_columns()
    has_it = groups[0].is_not_null()
    figures = [
        (groups[number - 1].cast(pl.Float64) * factor).alias(f"field {n}")
        for n, (number, factor) in enumerate(shape.figures)
    ]
    found = lines.select(_STAMP).with_columns(figures)
    if has_it.all():
        return found
    return in_order(found.filter(has_it), _searched(lines.filter(~has_it), fields), has_it)


def _searched(lines: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    """As `_extracted`, field by field."""
    line = pl.col("line")
    found = lines.select(  # in one go: polars then works on several columns at once
        _STAMP,
        *(_tags() if lines["line"].str.contains(_ANY_TAG).any() else ()),
        *(
            (line.str.extract(f.quick, 1) if f.quick else line.str.extract_groups(f.pattern)).alias(
                f"field {n}"
            )
            for n, f in enumerate(fields)
        ),
    )
    values = [
        (_quick_values if field.quick else _values)(found[f"field {n}"], field, lines["line"])
        for n, field in enumerate(fields)
    ]
    return found.with_columns(value.alias(f"field {n}") for n, value in enumerate(values))


def _tags() -> list[pl.Expr]:
    line = pl.col("line")
    return [
        pl.coalesce(line.str.extract(pattern, 1) for pattern in _PHASE).alias("phase"),
        line.str.extract(_PID, 1).alias("pid"),
        line.str.extract(_RANK, 1).alias("rank"),
    ]


# A copy: a slice of the line would keep the whole text in memory.
_STAMP = pl.col("stamp") + ""


def _quick_values(figures: pl.Series, field: Field, lines: pl.Series) -> pl.Series:
    """As `_values`, which is asked for the lines that the quick pattern does not match."""
    factor = float(units.bytes_per_unit(field.unit) or 1)
    values = _figures(figures) * factor
    missing = figures.is_null()
    if missing.any():
        others = lines.filter(missing)
        rest = _values(others.str.extract_groups(field.pattern), field, others)
        if rest.null_count() < len(rest):
            values = values.scatter(missing.arg_true(), rest)
    return values


def _values(groups: pl.Series, field: Field, lines: pl.Series) -> pl.Series:
    """The figures, in bytes where a unit of memory stands behind them."""
    figures, suffix = groups.struct.unnest().get_columns()
    values = _figures(figures)
    found = suffix.unique().drop_nulls().to_list()
    factors = {unit: units.bytes_per_unit(unit) for unit in found}
    known = {unit: float(factor) for unit, factor in factors.items() if factor is not None}
    if not known:
        return values
    scale = suffix.replace_strict(
        list(known), list(known.values()), default=1.0, return_dtype=pl.Float64
    )
    scaled: pl.Series = values * scale.fill_null(1.0)
    return scaled


def _figures(texts: pl.Series) -> pl.Series:
    figures: pl.Series = texts.cast(pl.Float64, strict=False)
    if figures.null_count() > texts.null_count():
        figures = texts.str.replace_all(",", "", literal=True).cast(pl.Float64, strict=False)
    return figures


def _as_table(frame: pl.DataFrame, fields: Sequence[Field], lines: int) -> Table | None:
    metrics = [f"field {n}" for n, f in enumerate(fields) if f.meaning.part is Part.METRIC]
    axes = [f"field {n}" for n, f in enumerate(fields) if f.meaning.part is Part.AXIS]
    has_metric = _have_any(frame, metrics)
    own = [name for name in axes if _leads(_those(frame[name].to_frame(), has_metric)[name])]
    # Positions and processes that a line names hold for the lines below it.
    tags = [name for name in ("pid", "phase") if name in frame.columns]
    carried = [*tags, *(() if own else axes)]
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
        names.append(_column_name(field))
        columns.append(_positions(column) if field.name == LEADING else column)
    for name in ("stamp", "phase", "pid", "rank"):
        if name in rows.columns and rows[name].null_count() < len(rows):
            names.append("timestamp" if name == "stamp" else name)
            columns.append(rows[name])
    return Table(names=tuple(names), columns=tuple(columns), first_line=None)


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

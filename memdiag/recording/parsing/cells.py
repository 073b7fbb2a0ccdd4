"""Cells into numbers: thousands commas, units behind the figure, dates and times of day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.timestamps import is_clock, seconds_of, spans_of
from memdiag.values import units
from memdiag.values.measurements import Unit

if TYPE_CHECKING:
    from memdiag.recording.lazy_polars import Column
    from memdiag.values.measurements import Floats

NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "None", "none", "null", "NULL", "-", "--"]
NULLS += ["?", "[N/A]", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]"]

# A figure may follow a mark (`t+240`, `~12`), be one of so many (`3/100`), and carry a unit.
_PREFIX = r"^[\s*`~#]*(?:[A-Za-z]{1,10}\s*[+=:#]\s*)?"
_DIGITS = r"[-+]?(?:[0-9]{1,3}(?:[,_' ][0-9]{3})+|[0-9][0-9_]*,?[0-9]*)(?:\.[0-9]*)?"
_FIGURE = rf"{_PREFIX}({_DIGITS}(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9]+(?:[eE][-+]?[0-9]+)?)"
# Behind it: a remark in brackets, how much there is, signs: `580 MB (+62 MB)`, `1.2GiB / 8GiB`.
_REMARK = r"(?:\s*[(\[].*|\s*/\s*[0-9].*|\s*[^\x00-\x7f]+)?"
_UNIT = rf"{_FIGURE}(?:/[0-9]+)?\s*([A-Za-z%]*){_REMARK}[\s*`]*$"
_WITH_UNIT = re.compile(_UNIT)
_PERHAPS_BYTES = re.compile(r"[0-9.,_]\s*[BKMGTPbkmgtp]")
_CELL_LENGTH = 200
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:[,' _][0-9]{3})+(?:\.[0-9]+)?")
_LOOKED_AT = 2000
_MOST = 1e30
# Clocks that count from 1970 are told from short runs by their size: 1e8 s is 1973.
_EPOCH_SCALES = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (1e8, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """A column's figures.

    values: shape (n,), NaN where missing; in `unit` where the cells carry one.
    unit: BYTES or PERCENT where the cells say so themselves, else None.
    unread: cells that hold text that is no figure; `unread_row` is the first of them.
    """

    values: Floats
    unit: Unit | None = None
    unread: int = 0
    unread_row: int | None = None


def to_numbers(column: Column) -> Cells:
    """The figures of a column of any type; text that is none is counted, not guessed at."""
    if isinstance(column, np.ndarray):
        figures = measurable(column).view()
        figures.flags.writeable = False  # the column's own
        return Cells(values=figures)
    if column.dtype.is_numeric():
        return Cells(values=_floats(column))
    if column.dtype != pl.String:
        return Cells(values=np.full(len(column), np.nan), unread=len(column), unread_row=0)
    text = column.str.strip_chars()
    filled = text.is_not_null() & ~text.is_in(NULLS)
    values, unit = _floats(text.cast(pl.Float64, strict=False)), None
    if bool((np.isnan(values) & filled.to_numpy()).any()):
        values, unit = _with_units(text)
    unread = np.isnan(values) & filled.to_numpy()
    first = int(np.argmax(unread)) if unread.any() else None
    return Cells(values=values, unit=unit, unread=int(unread.sum()), unread_row=first)


def holds_bytes(column: pl.Series) -> bool:
    """Some of these texts are figures with a unit of memory: then `to_numbers` gives bytes.

    In Python's own words: for the few cells of one column out of a hundred thousand, polars takes
    longer to begin than to search.
    """
    texts = [text[:_CELL_LENGTH] for text in set(column.to_list()) if text is not None]
    if _PERHAPS_BYTES.search("\n".join(texts)) is None:
        return False
    found = {unit[2] for text in texts if (unit := _WITH_UNIT.match(text.strip()))}
    return any(units.bytes_per_unit(unit) is not None for unit in found)


def to_seconds(column: Column, factor: float) -> Floats:
    """Seconds of a time column: figures times `factor`, dates, times of day, or spans of time in
    words; NaN if none.

    What counts from 1970 is counted from the first reading instead.
    """
    if not isinstance(column, np.ndarray) and column.dtype == pl.String:
        text = column.str.strip_chars()
        if is_clock(text.head(_LOOKED_AT)) or is_clock(text):
            return seconds_of(text)
        if np.isfinite(spans := spans_of(text)).any():
            return spans
    values = to_numbers(column).values
    seen: Floats = values[np.isfinite(values)]
    top = float(np.abs(seen).max()) if seen.size else 0.0
    scale = next((scale for above, scale in _EPOCH_SCALES if top > above), None)
    if scale is None or factor != 1.0:
        return values * factor
    since_first: Floats = (values - float(seen.min())) * scale
    return since_first


def resolution(values: Floats) -> float:
    """The step of printed figures (1.0 for whole numbers, 0.01 for two decimals), 0 unknown."""
    seen = values[:_LOOKED_AT][np.isfinite(values[:_LOOKED_AT])]
    if seen.size == 0:
        return 0.0
    for decimals in range(7):
        scaled = seen * 10.0**decimals
        if np.all(np.abs(scaled - np.round(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))):
            return float(10.0**-decimals)
    return 0.0


def measurable(values: Floats) -> Floats:
    """NaN where a figure is infinite, or beyond all that could have been measured."""
    # (Most columns need no array of their size in between; NaN is passed over.)
    if len(values) and np.fmin.reduce(values) >= -_MOST and np.fmax.reduce(values) <= _MOST:
        return values
    beyond = np.abs(values) > _MOST
    return np.where(beyond, np.nan, values) if beyond.any() else values


def _floats(column: pl.Series) -> Floats:
    """NaN where null or beyond measure. (`to_numpy` makes NaN of null without polars' engine.)"""
    if column.dtype.is_decimal() or "128" in str(column.dtype):  # numpy knows neither
        column = column.cast(pl.Float64)
    if column.n_chunks() == 1:
        return measurable(column.to_numpy().astype(np.float64, copy=False))
    values, end = np.empty(len(column)), 0
    for part in column.get_chunks():  # one copy, where joining and converting them would be two
        start, end = end, end + len(part)
        values[start:end] = part.to_numpy()
    return measurable(values)


def _with_units(text: pl.Series) -> tuple[Floats, Unit | None]:
    figures = text.str.extract(_FIGURE, 1).str.strip_chars()
    suffix = text.str.extract(_UNIT, 2).str.to_lowercase()
    known = {unit: _factor(unit) for unit in suffix.drop_nulls().unique().to_list()}
    factors = suffix.replace_strict(list(known), list(known.values()), return_dtype=pl.Float64)
    values = _floats(_plain(figures).cast(pl.Float64, strict=False)) * _floats(factors)
    seen = {unit for unit in known if known[unit] == known[unit]}
    if any(units.bytes_per_unit(unit) is not None for unit in seen - {""}):
        return values, Unit.BYTES
    return values, Unit.PERCENT if seen & {"%"} else None


def _factor(unit: str) -> float:
    if unit in {"", "%"}:
        return 1.0
    size = units.bytes_per_unit(unit)
    return float("nan") if size is None else float(size)


def _plain(figures: pl.Series) -> pl.Series:
    """Without thousands separators; a comma that separates no thousands is a decimal comma."""
    grouped = figures.drop_nulls().unique().to_list()
    commas = [figure for figure in grouped if "," in figure]
    if commas and not all(_THOUSANDS.fullmatch(figure) for figure in commas):
        if any("." in figure for figure in grouped):
            return figures.str.replace_all("[,_' ]", "")
        return figures.str.replace_all(",", ".", literal=True).str.replace_all("[_' ]", "")
    return figures.str.replace_all("[,_' ]", "")

"""Converts cells to numbers: thousands separators, units, dates and times of day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.number_marks import (
    DIGITS,
    decimal_commas,
    has_marks_of_thousands,
    plain,
)
from memdiag.recording.parsing.timestamps import is_clock, seconds_of, spans_of, with_marked_days
from memdiag.values import units
from memdiag.values.measurements import Unit

if TYPE_CHECKING:
    from memdiag.recording.lazy_polars import Column
    from memdiag.values.measurements import Floats

NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "None", "none", "null", "NULL", "-", "--"]
NULLS += ["?", "[N/A]", "[Not Supported]", "[Unknown Error]", "[Insufficient Permissions]"]

# A number may have a prefix (`t+240`, `~12`), a total (`3/100`) and a unit.
_PREFIX = r"^[\s*`~#]*(?:[A-Za-z]{1,10}(?:32|64)?\s*[+=:#]\s*)?"
_NUMBER = rf"{_PREFIX}([-+]?{DIGITS}(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9]+(?:[eE][-+]?[0-9]+)?)"
# After it: a remark in brackets, the total, signs: `580 MB (+62 MB)`, `1.2GiB / 8GiB`.
_REMARK = r"(?:\s*[(\[].*|\s*/\s*[0-9].*|\s*[^\x00-\x7f]+)?"
_UNIT = rf"{_NUMBER}(?:/[0-9]+)?\s*([A-Za-z%]*){_REMARK}[\s*`]*$"
# `22.8 -> 22.7 GB` ends with the later value, `807 ± 2 MiB` has its spread, and in
# `3.02 / 24.00 GiB` one unit stands for both.
_BEFORE = r"^.*[0-9].*(?:->|→|=>|⇒|➜|➔)\s*"
_SPREAD = r"\s*(?:±|\+/?-)\s*[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?"
_OF_TOTAL = r"^([^/A-Za-z]*[0-9])\s*/\s*[0-9][0-9.,]*\s*([A-Za-z]+)"
_WITH_UNIT = re.compile(_UNIT)
_PERHAPS_BYTES = re.compile(r"[0-9.,_]\s*[BKMGTPbkmgtp]")
_DAYS_IN_DIGITS = 1900_01_01, 2099_12_31
_CELL_LENGTH = 200
_LOOKED_AT = 2000
_MOST = 1e30
# Times since 1970 are larger than the times of any run: 1e8 s is 1973.
EPOCH_SCALES = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (1e8, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """A column's numbers.

    values: shape (n,), NaN where missing; in `unit` if the cells have one.
    unit: BYTES or PERCENT if the cells have a unit, else None.
    unread: number of cells with text that is not a number; `unread_row` is the first of them.
    """

    values: Floats
    unit: Unit | None = None
    unread: int = 0
    unread_row: int | None = None


def to_numbers(column: Column) -> Cells:
    """The numbers of a column of any type; text that is not a number is counted."""
    if isinstance(column, np.ndarray):
        values = measurable(column).view()
        values.flags.writeable = False  # it belongs to the column
        return Cells(values=values)
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
    """Return True if some of these texts are numbers with a unit of memory.

    In plain Python: for a few cells of each of a hundred thousand columns polars takes longer.
    """
    texts = [text[:_CELL_LENGTH] for text in set(column.to_list()) if text is not None]
    if _PERHAPS_BYTES.search("\n".join(texts)) is None:
        return False
    found = {unit[2] for text in texts if (unit := _WITH_UNIT.match(text.strip()))}
    return any(units.bytes_per_unit(unit) is not None for unit in found)


def numbers_in(text: pl.Series) -> pl.Series:
    """The numbers of cells as they are written, null for other texts."""
    return _without_earlier(text.str.strip_chars()).str.extract(_UNIT, 1)


def to_seconds(column: Column, factor: float) -> Floats:
    """Seconds of a time column: numbers times `factor`, dates, times of day, or durations in
    words; NaN if none.

    Times since 1970 are turned into times since the first reading.
    """
    if (text := times_as_text(column)) is not None:
        if is_clock(text.head(_LOOKED_AT)) or is_clock(text):
            return seconds_of(text)
        if np.isfinite(spans := spans_of(text)).any():
            return spans
    values = to_numbers(column).values
    since_first = since_first_of_1970(values, factor)
    return values * factor if since_first is None else since_first


def times_as_text(column: Column) -> pl.Series | None:
    """The texts of a time column, and of its numbers if all are days: `20240811`. None for other
    numbers.
    """
    if isinstance(column, np.ndarray):
        return None
    if column.dtype == pl.String:
        return with_marked_days(column.str.strip_chars())
    if not column.dtype.is_integer() or not column.is_between(*_DAYS_IN_DIGITS).all():
        return None
    days = with_marked_days(column.cast(pl.String))
    return days if is_clock(days) else None


def since_first_of_1970(values: Floats, factor: float = 1.0) -> Floats | None:
    """Seconds since the first of times since 1970, None for other numbers.

    factor: seconds in the unit of the numbers, 1 if it is not known.
    """
    seen: Floats = values[np.isfinite(values)]
    latest = float(np.abs(seen).max()) * factor if seen.size else 0.0
    scale = next((scale for above, scale in EPOCH_SCALES if latest > above), None)
    if scale is None:
        return None
    since_first: Floats = (values - float(seen.min())) * (factor * scale)
    return since_first


def resolution(values: Floats) -> float:
    """The resolution of printed numbers (1.0 for integers, 0.01 for two decimals), 0 unknown."""
    seen = values[:_LOOKED_AT][np.isfinite(values[:_LOOKED_AT])]
    if seen.size == 0:
        return 0.0
    for decimals in range(7):
        scaled = seen * 10.0**decimals
        if np.all(np.abs(scaled - np.round(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))):
            return float(10.0**-decimals)
    return 0.0


def has_numbers(values: Floats) -> bool:
    """Return True if some value is a number. (Most columns begin with one.)"""
    return bool(np.isfinite(values[:1]).any() or np.isfinite(values).any())


def has_any_number(column: Column) -> bool:
    """Return True if some cell of the column is a number."""
    return bool(np.isfinite(to_numbers(column).values).any())


def measurable(values: Floats) -> Floats:
    """NaN where a value is infinite or too large to be a measurement."""
    # (For most columns this needs no array of their size; NaN is ignored.)
    if len(values) and np.fmin.reduce(values) >= -_MOST and np.fmax.reduce(values) <= _MOST:
        return values
    beyond = np.abs(values) > _MOST
    return np.where(beyond, np.nan, values) if beyond.any() else values


def _floats(column: pl.Series) -> Floats:
    """NaN where null or too large. (`to_numpy` turns null into NaN.)"""
    if column.dtype.is_decimal() or "128" in str(column.dtype):  # numpy has neither
        column = column.cast(pl.Float64)
    if column.n_chunks() == 1:
        return measurable(column.to_numpy().astype(np.float64, copy=False))
    values, end = np.empty(len(column)), 0
    for part in column.get_chunks():  # one copy instead of two
        start, end = end, end + len(part)
        values[start:end] = part.to_numpy()
    return measurable(values)


def _with_units(text: pl.Series) -> tuple[Floats, Unit | None]:
    text = _without_earlier(text).str.replace(_OF_TOTAL, "$1 $2")
    numbers = text.str.extract(_NUMBER, 1).str.strip_chars()
    suffix = text.str.extract(_UNIT, 2).str.to_lowercase()
    known = {unit: _factor(unit) for unit in suffix.drop_nulls().unique().to_list()}
    factors = suffix.replace_strict(list(known), list(known.values()), return_dtype=pl.Float64)
    values = _floats(_plain(numbers).cast(pl.Float64, strict=False)) * _floats(factors)
    seen = {unit for unit in known if known[unit] == known[unit]}
    if any(units.bytes_per_unit(unit) is not None for unit in seen - {""}):
        return values, Unit.BYTES
    return values, Unit.PERCENT if seen & {"%"} else None


def _without_earlier(text: pl.Series) -> pl.Series:
    return text.str.replace(_BEFORE, "").str.replace(_SPREAD, "")


def _factor(unit: str) -> float:
    if unit in {"", "%"}:
        return 1.0
    size = units.bytes_per_unit(unit)
    return float("nan") if size is None else float(size)


def _plain(numbers: pl.Series) -> pl.Series:
    different = numbers.drop_nulls().unique().to_list()
    if not has_marks_of_thousands(different):  # as in most columns
        return numbers
    return plain(numbers, commas=bool(decimal_commas(different)))

"""Writes the numbers of a table with points before decimals, where its cells have commas there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memdiag.recording.lazy_polars import as_series, is_text, pl
from memdiag.recording.parsing.cells import numbers_in
from memdiag.recording.parsing.number_marks import (
    ONE_GROUP,
    count_needs_groups,
    decimal_marks,
    with_points,
)

if TYPE_CHECKING:
    from memdiag.recording.lazy_polars import Column

_MARKED = "[0-9][.,][0-9]"
# So many different numbers prove it: "0,1" may be two devices.
_PROOFS_AT_LEAST = 2
_LOOKED_AT = 2000


def commas_in(columns: Sequence[Column]) -> bool | None:
    """True if the numbers in columns of text have commas before decimals, False if they have
    points, or both; None if they do not show it.
    """
    texts, commas = [], 0
    for column in filter(_is_of_numbers, columns):
        text = as_series(column).drop_nulls()
        numbers = numbers_in(text.filter(text.str.contains(_MARKED))).drop_nulls()
        marks = decimal_marks(numbers.unique().to_list())
        if marks["."]:
            return False
        commas += marks[","]
        texts.append(text)
    return commas >= _PROOFS_AT_LEAST or any(map(count_needs_groups, texts)) or None


def has_groups_perhaps(columns: Sequence[Column]) -> bool:
    """Return True if some number in columns of text may have a point between thousands."""
    texts = (as_series(column).drop_nulls() for column in columns if _is_of_numbers(column))
    return any(bool(numbers_in(text).str.contains(ONE_GROUP).any()) for text in texts)


def unclear(columns: Sequence[Column]) -> tuple[str, ...]:
    """A note if 900 and 1.000 stand in one column, which may both fall and rise."""
    texts = (as_series(column).drop_nulls() for column in columns if _is_of_numbers(column))
    for text in texts:
        if all(bool(text.str.contains(form).any()) for form in (ONE_GROUP, "^[0-9]{1,3}$")):
            return ("no number shows whether 1.000 is one or one thousand: read as one",)
    return ()


def with_decimal_points(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns with points for the commas before decimals, and without marks of thousands."""
    return tuple(
        _with_points(as_series(column)) if _is_of_numbers(column) else column for column in columns
    )


def _is_of_numbers(column: Column) -> bool:
    """Return True if a text has numbers with marks, and most of its cells are numbers, perhaps with
    a unit or a remark.
    """
    if not is_text(column) or not _has_marks(as_series(column)):
        return False
    filled = as_series(column).drop_nulls().head(_LOOKED_AT)
    filled = filled.filter(filled.str.contains("[0-9]"))
    return len(filled) > 0 and 2 * numbers_in(filled).count() >= len(filled)


def _has_marks(column: pl.Series) -> bool:
    """In plain Python for a few cells: polars takes longer for each of many columns."""
    if len(column) > _LOOKED_AT:
        return bool(column.str.contains(_MARKED).any())
    cells = (cell for cell in column.to_list() if cell)
    return re.search(_MARKED, "\n".join(cells)) is not None


def _with_points(column: pl.Series) -> pl.Series:
    cells = [None if cell is None else with_points(cell) for cell in column.to_list()]
    return pl.Series(column.name, cells, dtype=pl.String)


def typed(column: pl.Series) -> pl.Series:
    """A column of text as numbers if all of its cells are."""
    for kind in (pl.Int64, pl.Float64):
        numbers: pl.Series = column.str.strip_chars().cast(kind, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
    return column

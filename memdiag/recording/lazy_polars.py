"""Polars, imported at its first use, and columns that do not need it.

The import takes longer than reading a log of a few MB whose lines are alike, which does without.
"""

from __future__ import annotations

import importlib
import io
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl

    from memdiag.values.measurements import Floats

    # Of any type, or only numbers, with NaN for missing ones.
    Column = pl.Series | Floats
else:

    class _Polars:
        def __getattr__(self, name: str) -> Any:
            found = getattr(importlib.import_module("polars"), name)
            setattr(self, name, found)  # wide tables ask for each column
            return found

    pl = _Polars()

__all__ = ["as_series", "is_numeric", "is_text", "pl", "raw_lines"]


def is_text(column: Column) -> bool:
    """Return True if the column holds text."""
    return not isinstance(column, np.ndarray) and column.dtype == pl.String


def is_numeric(column: Column) -> bool:
    """Return True if the column holds only numbers."""
    return isinstance(column, np.ndarray) or column.dtype.is_numeric()


def as_series(column: Column) -> pl.Series:
    """The column as a polars series."""
    return pl.Series(column, nan_to_null=True) if isinstance(column, np.ndarray) else column


def raw_lines(raw: bytes) -> pl.Series:
    """The lines of a text that contains no byte 1, several times faster than by a Python string
    for each. The text may be compressed by zstd or gzip; blank lines may be missing at its end.

    Invalid UTF-8 is replaced. Raises PolarsError if there is no line.
    """
    frame = pl.read_csv(
        io.BytesIO(raw),
        has_header=False,
        separator="\x01",
        quote_char=None,
        infer_schema=False,
        encoding="utf8-lossy",
    )
    return frame.to_series(0).fill_null("")

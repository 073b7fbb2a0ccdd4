"""Polars, imported when it is first used, and columns that may do without it.

Its import takes longer than to read a log of some MB whose lines are alike, which needs none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl

    from memdiag.values.measurements import Floats

    # Of any type, or figures alone: then NaN is where there is none.
    Column = pl.Series | Floats
else:

    class _Polars:
        def __getattr__(self, name: str) -> Any:
            found = getattr(importlib.import_module("polars"), name)
            setattr(self, name, found)  # not asked again: wide tables ask for each column
            return found

    pl = _Polars()

__all__ = ["as_series", "is_numeric", "is_text", "pl"]


def is_text(column: Column) -> bool:
    """It holds text."""
    return not isinstance(column, np.ndarray) and column.dtype == pl.String


def is_numeric(column: Column) -> bool:
    """It holds numbers alone."""
    return isinstance(column, np.ndarray) or column.dtype.is_numeric()


def as_series(column: Column) -> pl.Series:
    """The column as polars has it."""
    return pl.Series(column, nan_to_null=True) if isinstance(column, np.ndarray) else column

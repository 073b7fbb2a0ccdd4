"""Tables from values of a Python program: data frames, dicts of arrays, an array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from memdiag.errors import UsageError
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.table import Table, without_lists
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_REMEDY = 'give a dict of arrays: {"step": steps, "rss_mb": readings}'
# How pandas shows what is missing.
_MISSING = frozenset({"nan", "NaT", "<NA>"})
_MAKERS = ("polars", "pandas")
# The index of a pandas frame with dates and no name.
_TIME = "time"


def describe(values: object) -> str:
    """What stands for the file name in a report: `DataFrame`, `dict`, `array`."""
    kind = type(values).__name__
    return kind if _maker(values) or isinstance(values, Mapping) else "array"


def table_of(values: object, *, name: str = "memory_bytes", axis: object = None) -> Table:
    """The columns of a polars or pandas data frame or series, of a mapping of names to arrays, or
    of one array of readings.

    name: of the column of an array. axis: positions of the readings of an array, shape (n,).
    Raises UsageError for anything else.
    """
    return Table.of(without_lists(_frame(values, name, axis)))


def _frame(values: Any, name: str, axis: object) -> pl.DataFrame:
    if _maker(values) == "polars":
        frame = values.collect() if hasattr(values, "collect") else values
        return _of_columns(
            _polars_columns(frame.to_frame() if hasattr(frame, "to_frame") else frame)
        )
    if _maker(values) == "pandas":
        return _of_columns(_pandas_columns(values))
    if isinstance(values, Mapping):
        return _of_columns((str(key), _series(value)) for key, value in values.items())
    columns = [(name, _readings(values))]
    if axis is not None:
        columns.insert(0, ("x", _readings(axis)))
    return _of_columns(columns)


def _maker(values: object) -> str:
    """The library that a data frame or series is of; "" for others."""
    maker = type(values).__module__.partition(".")[0]
    return maker if maker in _MAKERS else ""


def _of_columns(columns: Iterable[tuple[str, pl.Series]]) -> pl.DataFrame:
    named: dict[str, pl.Series] = {}
    for name, series in columns:
        unused = name
        while unused in named:  # as readers of CSV files do
            unused += "_"
        named[unused] = series.alias(unused)
    lengths = {name: len(series) for name, series in named.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{printable(name)}: {length}" for name, length in lengths.items())
        raise UsageError(f"the columns have different lengths ({shown})", remedy=_REMEDY)
    return pl.DataFrame([*named.values()])


def _polars_columns(frame: pl.DataFrame) -> Iterable[tuple[str, pl.Series]]:
    return ((series.name, _of_polars(series)) for series in frame.get_columns())


def _of_polars(series: pl.Series) -> pl.Series:
    """A column as readers of files give it. Times are seconds since 1970."""
    kind = series.dtype
    if kind == pl.Datetime:
        return _in_seconds(series.dt.epoch("us"))
    if kind == pl.Duration:
        return _in_seconds(series.dt.total_microseconds())
    if kind in (pl.Boolean, pl.Decimal):
        series = series.cast(pl.Float64)
    elif kind in (pl.Categorical, pl.Enum, pl.Date, pl.Time):
        series = series.cast(pl.String)
    return series


def _in_seconds(microseconds: pl.Series) -> pl.Series:
    seconds: pl.Series = microseconds.cast(pl.Float64) / 1e6
    return seconds


def _pandas_columns(values: Any) -> Iterable[tuple[str, pl.Series]]:
    """The columns of a frame or series, after its index if that has a name or dates."""
    frame = values.to_frame() if not hasattr(values, "columns") else values
    index = frame.index
    if any(name is not None for name in index.names):
        frame = frame.reset_index()
    elif str(index.dtype).startswith("datetime64"):
        yield _TIME, _series(index)
    for at, name in enumerate(frame.columns):
        words = name if isinstance(name, tuple) else (name,)
        yield " ".join(str(word) for word in words if word != ""), _series(frame.iloc[:, at])


def _series(values: Any) -> pl.Series:
    """A column of numbers if it can be one; of text otherwise. Times are seconds since 1970."""
    if _maker(values) == "polars":
        return _of_polars(values)
    if str(getattr(values, "dtype", "")).startswith("datetime64"):
        array = np.asarray(values, dtype="datetime64[ns]")  # in UTC
    else:
        array = np.asarray(values)
    if array.ndim != 1:
        shape = "x".join(map(str, array.shape)) or "()"
        raise UsageError(f"values of shape {shape} are not a column, shape (n,)", remedy=_REMEDY)
    if array.dtype.kind in "mM":
        seconds = array.astype(f"{array.dtype.kind}8[ns]").astype("int64") / 1e9
        return pl.Series(np.where(np.isnat(array), np.nan, seconds))
    if array.dtype.kind == "b":
        return pl.Series(array.astype("int8"))
    if array.dtype.kind in "iuf":
        return pl.Series(array if array.dtype.itemsize > 2 else array.astype("float64"))
    return _of_objects(array)


def _of_objects(array: NDArray[Any]) -> pl.Series:
    cells = [None if one is None or str(one) in _MISSING else one for one in array]
    try:
        floats = [np.nan if one is None else float(one) for one in cells]
    except (TypeError, ValueError):
        return pl.Series([None if one is None else str(one) for one in cells], dtype=pl.String)
    return pl.Series(np.asarray(floats, dtype="float64"))


def _readings(values: Any) -> pl.Series:
    try:
        array = np.asarray(values, dtype="float64")
    except (TypeError, ValueError, RuntimeError) as error:  # a tensor with a gradient
        raise UsageError(
            f"values of type {type(values).__name__} are not numbers", remedy=_REMEDY
        ) from error
    return _series(array)

"""Series that memdiag itself has sent to a tracker (`--to`), as a recording again.

`memdiag/rss_bytes` is of all processes together, `memdiag/rank0/rss_bytes` of one. What others have
logged to the same run is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.tables.table import Table
from memdiag.values.metrics import KEY_COLUMNS

_SENT = re.compile(r"memdiag/(?:(?!verdict/)(?P<process>[^/]+)/)?(?P<metric>[^/]+)")
_TREE = "tree"
_STEP, _AT = "step", "at_s"
# Columns with the time, and how many of its units are a second.
_CLOCKS = {"wall_time": 1.0, "timestamp": 1000.0}


def is_sent(name: str) -> bool:
    """Return True if memdiag gives such a name to a series of readings."""
    return _SENT.fullmatch(name) is not None


def as_recorded(table: Table) -> Table | None:
    """The table as of a native recording; None if it has no series of memdiag."""
    if not any(map(is_sent, table.names)):
        return None  # without polars
    columns = dict(zip(table.names, table.series, strict=True))
    found: dict[str, dict[str, pl.Series]] = {}
    for name, column in columns.items():
        if (sent := _SENT.fullmatch(name)) is not None:
            process = sent["process"] or _TREE
            found.setdefault(process, {})[sent["metric"]] = _numbers(column)
    own = found.get(_TREE, {})
    step, at_s = own.get(_STEP), own.get(_AT)
    for readings in found.values():
        for key in KEY_COLUMNS:
            readings.pop(key, None)
    if at_s is None:
        at_s = _seconds(columns)
    if at_s is None or not any(found.values()):
        return None
    frames = [
        _rows(process, number, readings, at_s, step)
        for number, (process, readings) in enumerate(sorted(found.items()), start=1)
        if readings
    ]
    whole = pl.concat(frames, how="diagonal").sort(_AT, maintain_order=True)
    metrics = [name for name in whole.columns if name not in KEY_COLUMNS]
    return Table.of(whole.select(*KEY_COLUMNS, *metrics), notes=table.notes)


def _rows(
    process: str,
    number: int,
    readings: Mapping[str, pl.Series],
    at_s: pl.Series,
    step: pl.Series | None,
) -> pl.DataFrame:
    frame = pl.DataFrame(dict(readings))
    has_reading = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    nothing = pl.Series([None] * len(at_s), dtype=pl.Float64)
    keys = pl.DataFrame({_AT: at_s, _STEP: nothing if step is None else step})
    frame = pl.concat([keys, frame], how="horizontal").filter(has_reading & at_s.is_not_null())
    return frame.with_columns(
        pl.lit(None, dtype=pl.String).alias("phase"),
        pl.lit(number).alias("pid"),
        pl.lit(process).alias("process"),
    )


def _seconds(columns: Mapping[str, pl.Series]) -> pl.Series | None:
    """Seconds since the first row, by the first clock there is."""
    for name, per_second in _CLOCKS.items():
        if name in columns:
            clock = to_numbers(columns[name]).values / per_second
            return pl.Series(clock - np.nanmin(clock)) if np.isfinite(clock).any() else None
    return None


def _numbers(column: pl.Series) -> pl.Series:
    """The column as numbers, null where there is none."""
    return pl.Series(to_numbers(column).values).fill_nan(None)

"""`aws cloudwatch get-metric-statistics --output text`: a row for each moment, in no order."""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import all_lines
from memdiag.recording.tables.table import Table

# The values of one or more statistics, the time, and the unit.
_ROW = re.compile(
    r"DATAPOINTS((?:\t[-+0-9.eE]+)+)\t([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+\S*)\t(\S+)\s*"
)
_UNITS = {
    "Bytes": "bytes",
    "Kilobytes": "KB",
    "Megabytes": "MB",
    "Gigabytes": "GB",
    "Percent": "percent",
}


def is_datapoints(source: Source) -> bool:
    """Return True if one of the first lines is such a row."""
    return any(map(_ROW.fullmatch, source.head().split("\n", 3)[:3]))


def read_datapoints(source: Source) -> Table | None:
    """The rows by time. The metric is the label on the first line."""
    label, rows = "memory", []
    for line in all_lines(source):
        if (row := _ROW.fullmatch(line)) is not None:
            rows.append((row[2], *row[1].split()))
            unit = _UNITS.get(row[3], "")
        elif line.strip() and not rows:
            label = line.split("\t")[-1].strip()
    width = min(map(len, rows), default=0)
    if width < 2:
        return None
    times, *values = zip(*sorted(row[:width] for row in rows), strict=True)
    name = f"{label} ({unit})" if unit else label
    names = [name] if len(values) == 1 else [f"{name} {n}" for n in range(1, len(values) + 1)]
    columns = [
        pl.Series(times),
        *(pl.Series(each).cast(pl.Float64, strict=False) for each in values),
    ]
    return Table(names=("time", *names), columns=tuple(columns), first_line=None)

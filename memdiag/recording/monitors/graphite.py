"""What Graphite answers to `format=raw`: `target,begin,end,step|value,None,...` in each line."""

from __future__ import annotations

import re

import numpy as np

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import all_lines
from memdiag.recording.tables.table import Table

_SERIES = re.compile(r"(\S[^|]{0,1000}),([0-9]{9,10}),[0-9]{9,10},([0-9]{1,7})\|")
_TIME, _PROCESS = "timestamp", "process"
_METRICS_AT_MOST = 200


def is_raw(source: Source) -> bool:
    """Return True if the first line is such a series."""
    return _SERIES.match(source.head()) is not None


def read_raw(source: Source) -> Table:
    """A row for each time and path, `servers.web-3`, with the values of all that ends its targets,
    `rss`; further ones than the first 200 of these are left out.
    """
    frames: dict[str, list[pl.DataFrame]] = {}
    left_out: set[str] = set()
    for line in all_lines(source):
        if (found := _SERIES.match(line)) is None:
            continue
        path, name = _parts(found[1])
        if len(frames) >= _METRICS_AT_MOST and name not in frames:
            left_out.add(name)
            continue
        values = pl.Series(line[found.end() :].split(",")).cast(pl.Float64, strict=False)
        times = int(found[2]) + int(found[3]) * np.arange(len(values), dtype=np.float64)
        frame = pl.DataFrame({_TIME: times, _PROCESS: path, name: values})
        frames.setdefault(name, []).append(frame)
    keys = [_TIME, _PROCESS]
    each = [pl.concat(parts).unique(keys) for parts in frames.values()]
    notes = (f"{len(left_out)} further metrics are left out",) if left_out else ()
    return Table.of(pl.concat(each, how="align").sort(keys), notes=notes)


def _parts(target: str) -> tuple[str, str]:
    """What a target is of, and the metric. One with functions is a metric as a whole."""
    path, _, name = target.rpartition(".")
    is_whole = "(" in target or name in {_TIME, _PROCESS}
    return ("", target) if is_whole else (path, name)

"""One number and one time in turn: `while sleep 60; do date; ps -o rss= -p PID; done`."""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import clock_in, moment_in
from memdiag.recording.tables.table import Table

_ALONE = re.compile(r"\s*[0-9][0-9,_]*\.?[0-9]*\s*(?:[KMGT]i?)?B?\s*")
_LOOKED_AT = 60
_LINES_AT_LEAST = 6


def is_dated(source: Source) -> bool:
    """Return True if all first lines are a number or a time, in turn: `date; ps -o rss= -p PID`."""
    lines = [line for line in source.head().split("\n")[:_LOOKED_AT] if line.strip()]
    numbers = [_ALONE.fullmatch(line) is not None for line in lines]
    dated = [bool(clock_in(line)) for line in lines]
    in_turn = all(a != b for a, b in zip(numbers, dated, strict=True))
    return in_turn and min(sum(numbers), sum(dated)) * 3 >= len(lines) > _LINES_AT_LEAST


def read_dated(source: Source) -> Table:
    """Each number with the time on a line above it."""
    time, rows = "", []
    for line in source.all_bytes().decode("utf-8", errors="replace").split("\n"):
        if _ALONE.fullmatch(line):
            rows.append((time, line.strip()))
        else:
            time = moment_in(line) or time
    times, readings = zip(*rows, strict=True)
    columns = (pl.Series(times), pl.Series(readings))
    return Table(names=("time", "memory"), columns=columns, first_line=None)

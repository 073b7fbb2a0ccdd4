"""Lines of StatsD, `worker.mem.rss:321085440|g`, as a client sends them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memdiag.recording.monitors.line_tools import table_of_lines
from memdiag.recording.parsing.column_meaning import Part, recognise

if TYPE_CHECKING:
    from memdiag.recording.inputs.source import Source
    from memdiag.recording.monitors.samplings import Row
    from memdiag.recording.tables.table import Table

_LINE = re.compile(
    r"([A-Za-z_][\w./-]{0,200}):([-+]?[0-9.]+)\|(g|c|ms|h|d|s)(?:\|@[0-9.]+)?(?:\|#(\S+))?"
)
_LINES_AT_LEAST = 4
_SHARE = 0.8


def is_statsd(source: Source) -> bool:
    """Return True if most lines of the head are such, and some of a gauge."""
    lines = [line.strip() for line in source.head().split("\n") if line.strip()]
    found = [one for line in lines if (one := _LINE.fullmatch(line)) is not None]
    return len(found) >= max(_LINES_AT_LEAST, _SHARE * (len(lines) - 1)) and any(
        one[3] == "g" for one in found
    )


def read_statsd(source: Source) -> Table | None:
    """Gauges of memory, but no changes of one (`+4096`). Other tags are another series."""
    return table_of_lines(source, _row)


def _row(line: str) -> Row | None:
    found = _LINE.fullmatch(line.strip())
    if found is None:
        return None
    name, value, kind, tags = found.groups()
    is_amount = kind == "g" and value[0].isdigit() and recognise(name).part is Part.METRIC
    return {f"{name} {tags}" if tags else name: value} if is_amount else {}

"""What Micrometer's `LoggingMeterRegistry` writes to the log of a service."""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.monitors.line_tools import table_of_lines
from memdiag.recording.monitors.samplings import Row
from memdiag.recording.tables.table import Table

# `jvm.memory.used{area=heap,id=G1 Old Gen} value=262.2925 MiB`
_GAUGE = re.compile(
    r"(?<![\w.])(?P<name>[a-z][\w.]{1,200}\{[^{}]{0,500}\}) value=(?P<value>[0-9.]{1,30})"
    r" ?(?P<unit>[KMGT]?i?B|bytes)\b"
)
_GAUGES_AT_LEAST = 4


def is_micrometer(source: Source) -> bool:
    """Return True if several lines of the head are of gauges of memory."""
    return sum(map(_has_gauge, source.head().split("\n"))) >= _GAUGES_AT_LEAST


def read_micrometer(source: Source) -> Table | None:
    """One row per publication, with the time of its first line, and a column for each gauge."""
    return table_of_lines(source, _cells)


def _has_gauge(line: str) -> bool:
    return _GAUGE.search(line) is not None


def _cells(line: str) -> Row:
    """The gauge of a line; none of other lines, whose times end no row."""
    found = _GAUGE.search(line)
    return {} if found is None else {found["name"]: f"{found['value']} {found['unit']}"}

"""What the debug exporter of OpenTelemetry's collector prints in detail: a metric's descriptor, and
below it the attributes, times and values of its points.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memdiag.recording.monitors.line_tools import in_head, table_of_lines
from memdiag.recording.parsing.column_meaning import Part, recognise

if TYPE_CHECKING:
    from collections.abc import Callable

    from memdiag.recording.inputs.source import Source
    from memdiag.recording.monitors.samplings import Row
    from memdiag.recording.tables.table import Table

_POINTS = re.compile(r"^NumberDataPoints #[0-9]+\s*$")
_HEADING = re.compile(r"(Resource attributes|Descriptor|Data point attributes):\s*")
_ITEM = re.compile(r"\s+-> ([\w.]{1,200}): (?:[A-Z][a-z]+\((.{0,200})\)|(\S.{0,200}?))\s*")
_FIELD = re.compile(r"(Timestamp|Value): (\S.{0,60}?)\s*")
_PROGRAM, _PID = "service.name", "process.pid"

is_debug = in_head(_POINTS)


def read_debug(source: Source) -> Table | None:
    """A row per point of a metric of memory that is a level, not a counter."""
    return table_of_lines(source, _reader())


def _reader() -> Callable[[str], Row | None]:
    """Reads lines, each by what is above it."""
    parts: dict[str, Row] = {}
    heading = [""]

    def row_of(line: str) -> Row | None:
        if (found := _HEADING.fullmatch(line)) is not None:
            heading[0] = found[1]
            parts[found[1]] = {}
        elif _POINTS.fullmatch(line):
            parts["Data point attributes"] = {}
        elif (found := _ITEM.fullmatch(line)) is not None:
            parts.setdefault(heading[0], {})[found[1]] = found[2] or found[3] or ""
        elif (found := _FIELD.fullmatch(line)) is not None:
            parts.setdefault("point", {})[found[1]] = found[2]
            return _point(parts) if found[1] == "Value" else {}
        return {}

    return row_of


def _point(parts: dict[str, Row]) -> Row:
    """The cells of a point, {} if its metric is not of memory."""
    metric, resource = parts.get("Descriptor", {}), parts.get("Resource attributes", {})
    attributes = sorted(parts.get("Data point attributes", {}).items())
    name = " ".join([metric.get("Name", ""), *(value for _, value in attributes)])
    unit = metric.get("Unit", "").replace("By", "B")
    name = f"{name} ({'bytes' if unit == 'B' else unit})" if unit.endswith("B") else name
    is_counter = "true" in metric.get("IsMonotonic", "")
    is_change = "Delta" in metric.get("AggregationTemporality", "")
    if is_counter or is_change or recognise(name).part is not Part.METRIC:
        return {}
    point = parts["point"]
    of = {"process": resource.get(_PROGRAM, ""), "pid": resource.get(_PID, "")}
    named = {key: value for key, value in of.items() if value}
    return {"timestamp": point.get("Timestamp", ""), **named, name: point["Value"]}

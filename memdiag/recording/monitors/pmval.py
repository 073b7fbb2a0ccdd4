"""What `pmval` of Performance Co-Pilot prints: lines about the metric, and a time and a value for
each of its instances below.

    metric:    proc.memory.rss
    units:     Kbyte

                    004711 gunicorn       004719 node
    10:11:12.120             969180            120412
"""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import TICK, Row, all_lines
from memdiag.recording.tables.table import Table

_ABOVE = re.compile(r"(metric|host|archive|start|end|semantics|units|samples|interval): +(\S.*)")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?")
_VALUE = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|\?")  # "?": this instance has none
_LINES_ABOVE_AT_LEAST, _HEAD_LINES = 4, 20


def is_pmval(source: Source) -> bool:
    """Return True if the first lines are those about a metric."""
    lines = source.head().split("\n")[:_HEAD_LINES]
    above = {found[1] for line in lines if (found := _ABOVE.fullmatch(line)) is not None}
    return len(above) >= _LINES_ABOVE_AT_LEAST and above >= {"metric", "semantics", "units"}


def read_pmval(source: Source) -> Table | None:
    """A row per time and instance; None without values."""
    above: dict[str, str] = {}
    rows: list[Row] = []
    header, tick = "", 0
    for line in all_lines(source):
        if (found := _ABOVE.fullmatch(line)) is not None:
            above[found[1]], header = found[2], ""
            continue
        cells = list(re.finditer(r"\S+", line))
        time = cells.pop(0)[0] if cells and _TIME.fullmatch(cells[0][0]) else ""
        if not cells or not all(_VALUE.fullmatch(cell[0]) for cell in cells):
            header = line if line.startswith(" ") and cells else header
            continue
        begin, tick = len(time), tick + 1
        for cell in cells:
            row = {"time": time} if time else {TICK: str(tick)}
            instance = header[begin : cell.end()].strip()
            row |= {"process": instance} if instance else {}
            rows.append(row | {_name(above): cell[0]})
            begin = cell.end()
    return Table.of(pl.DataFrame(rows, infer_schema_length=None)) if rows else None


def _name(above: dict[str, str]) -> str:
    """The metric with its unit: `Kbyte` is KiB, `Kbyte (converting to Kbyte / sec)` is a rate."""
    unit = above.get("units", "").rpartition("converting to ")[2].rstrip(")")
    unit = re.sub(r"\b([KMGTPE])byte\b", r"\1iB", unit)
    return f"{above.get('metric', '')} ({unit})"

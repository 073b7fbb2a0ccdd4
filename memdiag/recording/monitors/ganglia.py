"""What Ganglia's gmond and gmetad answer, again and again: an XML document per reading.

<CLUSTER NAME="hpc" LOCALTIME="1689000000">
<HOST NAME="n014" REPORTED="1688999996">
<METRIC NAME="mem_free" VAL="92095932.000" TYPE="float" UNITS="KB">
"""

from __future__ import annotations

import re
from html import unescape

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import Row, all_lines
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table

_DOCUMENT = re.compile(r"<GANGLIA_XML\b")
_TAG = re.compile(r"<(CLUSTER|HOST|METRIC)\s([^<>]*)>")
_MEMBER = re.compile(r'\b([A-Z_]+)="([^"]*)"')
_UNITS = {"KB": "KiB"}  # of /proc/meminfo
_METRICS_AT_MOST = 200


def is_ganglia(source: Source) -> bool:
    """Return True if the head has the beginning of a document."""
    return _DOCUMENT.search(source.head()) is not None


def read_ganglia(source: Source) -> Table | None:
    """A row per time and host, with its metrics of memory; None without any."""
    rows: list[Row] = []
    names: dict[str, None] = {}
    time = ""
    for tag, inside in _TAG.findall("\n".join(all_lines(source))):
        members = {key: unescape(value) for key, value in _MEMBER.findall(inside)}
        if tag == "CLUSTER":
            time = members.get("LOCALTIME", "")
        elif tag == "HOST":
            at = time or members.get("REPORTED", "")
            rows.append({"timestamp": at, "process": members.get("NAME", "")})
        elif rows and (name := _name(members)) and len(names) < _METRICS_AT_MOST:
            names.setdefault(name)
            rows[-1][name] = members.get("VAL", "")
    columns = {key: [row.get(key) for row in rows] for key in ("timestamp", "process", *names)}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return Table.of(frame) if names else None


def _name(members: dict[str, str]) -> str:
    """The metric with its unit, "" if it is not of memory."""
    name, unit = members.get("NAME", ""), members.get("UNITS", "").strip()
    shown = f"{name} ({_UNITS.get(unit, unit)})" if unit else name
    return shown if recognise(shown).part is Part.METRIC else ""

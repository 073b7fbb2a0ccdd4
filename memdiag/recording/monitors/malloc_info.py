"""What `malloc_info` of glibc prints in a loop: an XML document per reading."""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import TICK, all_lines
from memdiag.recording.tables.table import Table

_DOCUMENT = re.compile(r'<malloc version="[0-9]+">')
# Of each heap, and behind them of the process.
_SYSTEM = re.compile(r'<system type="current" size="([0-9]{1,18})"\s*/>')
_TOTAL = re.compile(r'<total type="(fast|rest|mmap)" count="[0-9]+" size="([0-9]{1,18})"\s*/>')
_NAMES = ("malloc_from_system_bytes", "malloc_in_use_bytes")


def is_malloc_info(source: Source) -> bool:
    """Return True if the head has the beginning of a document."""
    return _DOCUMENT.search(source.head()) is not None


def read_malloc_info(source: Source) -> Table | None:
    """What malloc has from the system, and what of it is in use; None without any."""
    rows = []
    for document in _DOCUMENT.split("\n".join(all_lines(source)))[1:]:
        process = document.rpartition("</heap>")[2]
        system, totals = _SYSTEM.search(process), dict(_TOTAL.findall(process))
        if system is not None:
            reserved = int(system[1]) + int(totals.get("mmap", 0))
            free = int(totals.get("fast", 0)) + int(totals.get("rest", 0))
            rows.append((reserved, reserved - free))
    if not rows:
        return None
    frame = pl.DataFrame(rows, schema=list(_NAMES), orient="row")
    return Table.of(frame.with_row_index(TICK))

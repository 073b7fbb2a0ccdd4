"""`cat /proc/PID/statm` in a loop, perhaps with the time before each line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import TICK, all_lines
from memdiag.recording.tables.table import Table

# proc_pid_statm(5): size, resident, shared, text, 0, data, 0, in pages.
_PAGES = r"([0-9]{1,12})"
_ROW = re.compile(rf"\s*(?:(\S.{{0,40}}?)\s+)?{_PAGES} {_PAGES} {_PAGES} {_PAGES} 0 {_PAGES} 0\s*")
_PAGE_BYTES = 4096
_NOTE = f"the numbers of /proc/PID/statm are taken as pages of {_PAGE_BYTES:,} bytes"
_ROWS_AT_LEAST, _SHARE = 4, 0.9


def is_statm(source: Source) -> bool:
    """Return True if nearly all lines of the head but remarks are of statm."""
    lines = source.head().split("\n")[: None if source.whole else -1]
    filled = [line for line in lines if line.strip() and not line.startswith(("#", "$"))]
    return len(list(_rows(filled))) >= max(_ROWS_AT_LEAST, _SHARE * len(filled))


def read_statm(source: Source) -> Table:
    """Virtual and resident memory over the time before each line, else over the lines."""
    frame = pl.DataFrame(
        list(_rows(all_lines(source))), schema=["time", "vms_bytes", "rss_bytes"], orient="row"
    )
    if frame["time"].has_nulls():
        frame = frame.drop("time").with_row_index(TICK)
    return Table.of(frame, notes=(_NOTE,))


def _rows(lines: Iterable[str]) -> Iterator[tuple[str | None, int, int]]:
    for line in lines:
        if (found := _ROW.fullmatch(line)) is None:
            continue
        size, resident, shared = (int(pages) * _PAGE_BYTES for pages in found.group(2, 3, 4))
        if size >= resident >= shared:
            yield found[1], size, resident

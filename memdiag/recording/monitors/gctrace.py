"""What Go prints at each garbage collection with `GODEBUG=gctrace=1`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import all_lines
from memdiag.recording.tables.table import Table

# runtime package, environment variables: `gc # @#s #%: ...#+# ms clock, ... #->#-># MB, # MB goal`:
# the heap at the start, at the end, and what of it is live.
_LINE = re.compile(
    r"(?:^|\s)gc [0-9]{1,12} @(?P<at_s>[0-9]{1,9}\.[0-9]{1,3})s [0-9]{1,3}%: .{1,200}? ms cpu, "
    r"[0-9]{1,9}->[0-9]{1,9}->(?P<live>[0-9]{1,9}) MB, "
)
_LINES_AT_LEAST = 4
_MIB = 1 << 20


def is_gctrace(source: Source) -> bool:
    """Return True if several lines of the head are of the garbage collector."""
    return len(list(_collections(source.head().split("\n")))) >= _LINES_AT_LEAST


def read_gctrace(source: Source) -> Table:
    """The allocated heap after each collection, over the seconds since the program's start."""
    rows = list(_collections(all_lines(source)))
    names = {"time (s)": pl.Float64, "heap allocated (bytes)": pl.Int64}
    return Table.of(pl.DataFrame(rows, schema=names, orient="row"))


def _collections(lines: Iterable[str]) -> Iterator[tuple[float, int]]:
    for line in lines:
        if (found := _LINE.search(line)) is not None:
            yield float(found["at_s"]), int(found["live"]) * _MIB

"""Rows of processes without a header: Windows' `tasklist /NH` in a loop, and `atop -P PRM`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memdiag.recording.inputs.source import Source
from memdiag.recording.monitors.process_tables import read_lines
from memdiag.recording.monitors.ruled_tables import has_ruled_tables
from memdiag.recording.monitors.samplings import all_lines, clock_in
from memdiag.recording.tables.table import Table

_HEADER = "PID RSS COMMAND"
# Name, pid, session, its number, KiB: `python.exe   14208 Console   1  2,347,412 K`.
_TASKLIST = re.compile(
    r"(?P<name>\S.{0,40}?)\s+(?P<pid>[0-9]{1,10})\s\S{1,32}\s{1,32}[0-9]{1,5}\s{1,16}"
    r"(?P<kib>[0-9]{1,3}(?:[.,'’\s][0-9]{3}){0,4})\sKo?\s*$"
)
_OF_ATOP = r" \S{1,255} [0-9]{9,11} (?P<time>[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]{8}) [0-9]{1,10} "
_ATOP = re.compile(rf"[A-Za-z]{{3}}{_OF_ATOP}")
# pid, name, state, bytes of a page, virtual and resident KiB; later perhaps `n` for a thread.
_ATOP_PROCESS = re.compile(
    rf"PRM{_OF_ATOP}(?P<pid>[0-9]{{1,10}}) \((?P<name>.{{0,255}})\) [A-Z] "
    r"[0-9]{1,8} [0-9]{1,16} (?P<kib>[1-9][0-9]{0,15})(?!\S| .* n(?: |$))"
)
_ROWS_AT_LEAST = 4


def is_tasklist(source: Source) -> bool:
    """Return True if several lines are rows of tasklist, some of the same process, and there is no
    header with a rule.
    """
    found = map(_TASKLIST.fullmatch, source.head().splitlines())
    pids = [row["pid"] for row in found if row is not None]
    is_loop = len(pids) >= _ROWS_AT_LEAST and len(set(pids)) < len(pids)
    return is_loop and not has_ruled_tables(source)


def read_tasklist(source: Source) -> Table | None:
    """The memory of each process over the times between the rows, else over the samplings."""
    return read_lines(_rows(source, _TASKLIST))


def is_atop(source: Source) -> bool:
    """Return True if several lines are of `atop -P`, whatever they are about."""
    lines = source.head().splitlines()
    return sum(_ATOP.match(line) is not None for line in lines) >= _ROWS_AT_LEAST


def read_atop(source: Source) -> Table | None:
    """Resident memory of each process; those that have ended have none."""
    return read_lines(_rows(source, _ATOP_PROCESS))


def _rows(source: Source, pattern: re.Pattern[str]) -> Iterator[str]:
    """The rows in the form of ps, below one header, with the times before them."""
    time, is_first = "", True
    for line in all_lines(source):
        found = pattern.match(line)
        if found is None:
            if clock_in(line):
                yield line
            continue
        parts = found.groupdict()
        if parts.get("time", time) != time:
            time = parts["time"]
            yield time
        if is_first:
            is_first = False
            yield _HEADER
        kib = re.sub("[^0-9]", "", parts["kib"])
        yield f"{parts['pid']} {kib} {parts['name']}"

"""Tables of processes: ps and top in a loop, pidstat, smem."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.aligned_cells import cells_below, words_of
from memdiag.recording.monitors.samplings import (
    TICK,
    Header,
    Line,
    Row,
    all_lines,
    clock_in,
    header_of,
    table_of_blocks,
    time_in_front,
)
from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.tables.table import Table

_PROCESSES_AT_MOST = 20
# Processes with fewer than 4 readings are left out beside one with 8 or more. Heuristic.
_READINGS_AT_LEAST, _LONG_LIVED_AT_LEAST = 4, 8
_HEAD_LINES = 60
_KIB = {"mem", "rss", "vsz", "vsize", "res", "virt", "shr", "size", "pss", "uss", "swap"}
# The command of a process, which may have blanks in it.
COMMANDS = {"command", "cmd", "args", "comm"}
_NAMES = {
    "res": "rss",
    "virt": "vms",
    "vsz": "vms",
    "vsize": "vms",
    "shr": "shared",
}
_NAMES |= {"rss": "rss", "pss": "pss", "uss": "uss", "swap": "swap"}
_NAMES |= dict.fromkeys(COMMANDS, "process")
_CPU_TIME = "TIME"  # in ps: the processor time of a process
_PROCESS_MEMORY = {"rss", "res", "pss", "uss"}
_OF_MACOS = {"command", "mem"}  # its top prints `812M+`
_KEPT = {"pid", "time", "process", "mem", "rss", "vms", "pss", "uss", "swap", "%mem"}
# Rows of which `grep` has left out the header: of `ps aux`, and of `top -b`.
_SIZE = r"\s+[0-9][0-9.,]*[kmgtp]?"
_ROWS = {
    "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND": re.compile(
        r"\s*\S+\s+[0-9]+(?:\s+[0-9]+(?:[.,][0-9])?){2}(?:\s+[0-9]+){2}\s+\S+\s+[A-Z][A-Za-z<+]*\s+\S+"
        r"\s+[0-9]+:[0-9]{2}(?:[.,:][0-9]+)?\s+\S"
    ),
    "PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND": re.compile(
        rf"\s*[0-9]+\s+\S+\s+(?:rt|-?[0-9]+)\s+-?[0-9]+{_SIZE}{_SIZE}{_SIZE}\s+[A-Z]"
        r"(?:\s+[0-9]+[.,][0-9]){2}\s+[0-9]+:[0-9]{2}\.[0-9]{2}\s+\S"
    ),
}
_SINCE_1970 = re.compile("1[0-9]{9}")
_ROWS_AT_LEAST = 4
# smemstat: `0.0 B    186.4 M`, and a column that is mostly empty.
_AMOUNTS_AT_LEAST = 2
_WITH_BLANK = re.compile(r"\s[0-9.]+ [BKMGT](?=\s)")


def has_processes(source: Source) -> bool:
    """Return True if one of the first lines is the header of a process table, or several are rows
    of a known one.
    """
    lines = source.head().split("\n")[:_HEAD_LINES]
    rows = sum(bool(_known_header(time_in_front(line)[1])) for line in lines)
    return rows >= _ROWS_AT_LEAST or any(map(_is_process_header, lines))


def read_processes(source: Source) -> Table | None:
    """Tables with a header like `PID ... RSS ... COMMAND`, once or repeated."""
    return read_lines(all_lines(source))


def read_lines(lines: Iterable[str]) -> Table | None:
    """The same of lines."""
    table = table_of_blocks(_with_headers(lines), _process_rows)
    if table is None:
        return None
    return _largest_processes(long_lived(table.with_decimal_points()))


def _is_process_header(line: str) -> bool:
    words = {word.lower() for word in line.split()}
    has_memory = bool(words & _PROCESS_MEMORY) or words >= _OF_MACOS
    return "pid" in words and has_memory and not any(map(_is_number, words))


def _known_header(row: str) -> str:
    """The header that belongs above such a row, "" if the row is none of a known table."""
    return next((header for header, pattern in _ROWS.items() if pattern.match(row)), "")


def _with_headers(lines: Iterable[str]) -> Iterator[Line]:
    """The lines with a header above the rows of each sampling: where a pid or a time comes again,
    and above rows without one. A time in front of a row has a line of its own.
    """
    header, at, is_dated, last_time = "", 0, False, ""
    pids: set[str] = set()
    for printed in lines:
        if _is_process_header(printed):
            header, at, is_dated, pids = printed, _place_of_pid(printed), False, set()
            yield True, header
            continue
        time, line = _apart(_without_blanks(printed, header) if header else printed, header, at)
        if time and time != last_time:
            is_dated, last_time = True, time
            yield False, time
        if not header and (known := _known_header(line)):
            header, at = known, _place_of_pid(known)
            yield True, header
        pid = _pid_in(line, at) if header else ""
        if pid:
            if is_dated or pid in pids:
                is_dated, pids = False, set()
                yield True, header
            pids.add(pid)
        elif header and clock_in(line):
            is_dated = True
        yield False, line


def _apart(line: str, header: str, at: int) -> tuple[str, str]:
    """The time in front of a row below a header that has none, and the row; "" and the line if it
    is something else. at: the place of the pid.
    """
    if header and _pid_in(line, at):
        return "", line
    time, row = time_in_front(line)
    is_row = _pid_in(row, at) if header else _known_header(row)
    return (time, row) if is_row else ("", line)


def _pid_in(row: str, at: int) -> str:
    """The pid in this place of a row, "" if something else is there, such as seconds since 1970."""
    words = row.split(None, at + 1)
    is_pid = len(words) > at and words[at].isdigit() and not _SINCE_1970.fullmatch(words[at])
    return words[at] if is_pid else ""


def _without_blanks(line: str, header: str) -> str:
    """The row with `-` for an empty cell and no blanks in one, except in the command at its end;
    unchanged unless several amounts have a blank before their unit.
    """
    if _WITH_BLANK.search(line) is None:  # as in most tables
        return line
    names = words_of(header)
    if len(_WITH_BLANK.findall(line[: names[-1][1]])) < _AMOUNTS_AT_LEAST:
        return line
    *cells, command = cells_below(names, line)
    return "  ".join([*(re.sub(" +", "", cell) or "-" for cell in cells), command])


def _place_of_pid(header: str) -> int:
    return [name.lower() for name in header_of(header)].index("pid")


def _is_number(word: str) -> bool:
    return word[:1].isdigit() and ":" not in word


def _process_rows(header: Header, lines: Sequence[str]) -> list[Row]:
    rows = []
    command = next((at for at, n in enumerate(header) if n.lower() in COMMANDS), len(header) - 1)
    for line in lines:
        cells = cells_around(line, command, len(header))
        if len(cells) != len(header):
            continue
        row = {}
        for name, cell in zip(header, cells, strict=True):
            lower = name.lower()
            key = _CPU_TIME if name == _CPU_TIME else _NAMES.get(lower, lower)
            row[key] = _kib(cell) if lower in _KIB else cell.strip()
        if "time" in row:  # pidstat's; "12:00:01 PM" is two cells
            row["time"] = clock_in(line) or row["time"]
        if row.get("pid", "").isdigit():
            rows.append({key: row[key] for key in row if key in _KEPT})
    return rows


def cells_around(line: str, command: int, width: int) -> list[str]:
    """The cells of a row; a command has blanks in it, and smem has columns after it.

    command: its place. width: the number of columns.
    """
    cells = line.split(None, command)
    behind = width - 1 - command
    if behind and len(cells) > command:
        cells[command:] = cells[command].rsplit(None, behind)
    return cells


def _kib(cell: str) -> str:
    """With the unit of these tools: KiB unless they print a letter (top: `1.2g`)."""
    cell = cell.rstrip("+-")
    number, letter = (cell[:-1], cell[-1]) if cell[-1:].isalpha() else (cell, "k")
    return f"{number} B" if letter == "B" else f"{number} {letter.upper()}iB"


def long_lived(table: Table) -> Table:
    """The table without processes that have too few readings for a verdict, where another is
    there most of the time: commands that ran during a reading, such as the monitor itself.
    """
    named = dict(zip(table.names, table.series, strict=True))
    moments = named.get("time", named.get(TICK))
    counts = named["pid"].value_counts()
    most = counts["count"].to_list()
    if moments is None or max(most) < max(_LONG_LIVED_AT_LEAST, moments.n_unique() / 2):
        return table
    few = counts.filter(counts["count"] < _READINGS_AT_LEAST)["pid"]
    if few.is_empty():
        return table
    note = f"of {len(counts)} processes {len(few)} with fewer than {_READINGS_AT_LEAST} readings"
    return table.filter(~named["pid"].is_in(few.to_list()), f"{note} are left out")


def _largest_processes(table: Table) -> Table:
    """A machine runs hundreds of processes: keep those with the most memory."""
    named = dict(zip(table.names, table.series, strict=True))
    size = next(named[name] for name in ("rss", "pss", "uss", "mem") if name in named)
    frame = pl.DataFrame({"pid": named["pid"], "size": to_numbers(size).values})
    peaks = frame.group_by("pid").agg(pl.col("size").max()).sort("size", descending=True)
    if len(peaks) <= _PROCESSES_AT_MOST:
        return table
    wanted = frame["pid"].is_in(peaks["pid"].head(_PROCESSES_AT_MOST).to_list())
    note = f"of {len(peaks)} processes the {_PROCESSES_AT_MOST} largest are analyzed"
    return table.filter(wanted, note)

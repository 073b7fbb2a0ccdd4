"""What `ps -o rss=,vsz=,etime=`, `ps --no-headers -o etimes,rss`, `ps -o rss,etime --no-headers` or
`ps -o pid,rss,etime,cmd | tail -1` printed below a text with this command: the rows have no header.
"""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.monitors.line_tools import table_of_lines
from memdiag.recording.monitors.process_tables import COMMANDS, cells_around, read_lines
from memdiag.recording.monitors.samplings import Row, all_lines, moment_in, time_in_front
from memdiag.recording.parsing.printed_columns import columns_of_ps
from memdiag.recording.tables.cells_of_lines import recognisable
from memdiag.recording.tables.table import Table

# Amounts are in KiB; `time` is that of the processor.
_NAMES = {"rss": "rss (KiB)", "vsz": "vsz (KiB)"}
_NAMES |= {"etime": "elapsed time (s)", "etimes": "elapsed (s)", "time": "cpu"}
_NAMES |= dict.fromkeys(COMMANDS, "process")
_SAME = {"rsz": "rss", "rssize": "rss", "vsize": "vsz"}
_DURATIONS = {"etime", "time"}
# What is a word, and no number.
_WORDS = {"user", "ruser", "euser", "uname", "tty", "tt", "stat", "state", "s", "wchan"}
_ELAPSED = re.compile(r"(?:([0-9]+)-)?(?:([0-9]{1,2}):)?([0-9]{1,2}):([0-9]{2})")
_NUMBER = re.compile(r"-?[0-9]{1,18}(?:[.,][0-9]{1,3})?|-")
_ROWS_AT_LEAST = 3
_LONGEST = 1000


def is_ps(source: Source) -> bool:
    """Return True if the head has the command and some rows of as many cells, which are numbers
    where its columns are.
    """
    lines = source.head().split("\n")
    columns = _columns_in(lines)
    rows = sum(_row(line, columns) is not None for line in lines)
    names = [_NAMES.get(column, column) for column in columns]
    return recognisable(names) and rows >= _ROWS_AT_LEAST


def read_ps(source: Source) -> Table | None:
    """One row per line of as many cells as the command names; rows of several processes as below
    the header that was left out.
    """
    columns = _columns_in(source.head().split("\n"))
    lines = all_lines(source)
    pids = {row.get("pid") for line in lines if (row := _row(line, columns)) is not None}
    if len(pids) > 1:
        kept = (line if _row(line, columns) is not None else moment_in(line) for line in lines)
        return read_lines([" ".join(columns), *kept])
    return table_of_lines(source, lambda line: _row(line, columns), has_clock=False)


def _columns_in(lines: list[str]) -> list[str]:
    """The columns of the command, [] if there are several that print others."""
    commands = (columns_of_ps(line) for line in lines if len(line) <= _LONGEST)
    found = {tuple(_SAME.get(one, one) for one in columns) for columns in commands if columns}
    return list(*found) if len(found) == 1 else []


def _row(line: str, columns: list[str]) -> Row | None:
    """The cells of a row, perhaps with a time in front."""
    time, rest = time_in_front(line)
    if time and (row := _cells(rest, columns)) is not None:
        return {"time": time, **row}
    return _cells(line, columns)


def _cells(line: str, columns: list[str]) -> Row | None:
    command = next((at for at, one in enumerate(columns) if one in COMMANDS), len(columns) - 1)
    cells = [cell.strip() for cell in cells_around(line, command, len(columns))]
    if not columns or len(cells) != len(columns) or not all(map(_is_of, cells, columns)):
        return None
    named = zip(columns, cells, strict=True)
    return {_NAMES.get(one, one): _seconds(cell, one) for one, cell in named}


def _is_of(cell: str, column: str) -> bool:
    """Return True if the cell may be of this column; a number before a command is of another."""
    if column in COMMANDS:
        return not cell.split(maxsplit=1)[0].isdigit()
    form = _ELAPSED if column in _DURATIONS else _NUMBER
    return column in _WORDS or form.fullmatch(cell) is not None


def _seconds(cell: str, column: str) -> str:
    """`[[days-]hours:]minutes:seconds` in seconds, another cell as it is."""
    found = _ELAPSED.fullmatch(cell) if column in _DURATIONS else None
    if found is None:
        return cell
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return str(((days * 24 + hours) * 60 + minutes) * 60 + seconds)

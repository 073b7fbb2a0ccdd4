"""What `ps -o rss=,vsz=,etime=`, `ps --no-headers -o etimes,rss`, `ps -o rss,etime --no-headers` or
`ps -o pid,rss,cmd -p 7 | tail -1` printed below a text with this command: the rows have no header.
"""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.monitors.line_tools import table_of_lines
from memdiag.recording.monitors.samplings import Row
from memdiag.recording.tables.cells_of_lines import is_number, recognisable
from memdiag.recording.tables.table import Table

_COMMAND = re.compile(r"\bps\b[^|;]*?\s-o\s*((?:[a-z%]+=,?\s*(?:-o\s*)?){2,})")
_NO_HEADERS = re.compile(
    r"\bps\b(?=[^|;]*\s(?:--no-headers?|h)(?:[\s;|)]|$))[^|;]*?\s-?o\s*([a-z%]+(?:,[a-z%]+)+)"
)
# `| tail -1`, `| tail -n +2`, `| sed 1d`, `| grep -v PID`
_ROWS_ALONE = re.compile(
    r"\bps\b[^|;]*?\s-?o\s*([a-z%]+(?:,[a-z%]+)+)[^|;]*"
    r"\|\s*(?:tail\s+-(?:n\s*)?(?:\+2|1)\b|sed\s+1d\b|grep\s+-v\b)"
)
# The last one may have blanks in its cells.
_TEXTS = frozenset(("args", "cmd", "comm", "command", "ucmd"))
# Amounts are in KiB.
_NAMES = {"rss": "rss (KiB)", "rsz": "rss (KiB)", "vsz": "vsz (KiB)", "vsize": "vsz (KiB)"}
_NAMES |= {"etime": "elapsed (s)", "etimes": "elapsed (s)"}
_ELAPSED = re.compile(r"(?:([0-9]+)-)?(?:([0-9]{1,2}):)?([0-9]{1,2}):([0-9]{2})")
_ROWS_AT_LEAST = 3
_LONGEST = 1000


def is_ps(source: Source) -> bool:
    """Return True if the head has the command and some rows of as many cells."""
    lines = source.head().split("\n")
    names = _names_in(lines)
    rows = sum(_row(line, names) is not None for line in lines)
    return recognisable(names) and rows >= _ROWS_AT_LEAST


def read_ps(source: Source) -> Table | None:
    """One row per line of as many cells as the command names, numbers but for the command."""
    names = _names_in(source.head().split("\n"))
    return table_of_lines(source, lambda line: _row(line, names))


def _names_in(lines: list[str]) -> list[str]:
    for line in (line[:_LONGEST] for line in lines):
        if (command := _COMMAND.search(line)) is not None:
            return [_NAMES.get(name, name) for name in re.findall(r"[a-z%]+(?==)", command[1])]
        if (command := _NO_HEADERS.search(line) or _ROWS_ALONE.search(line)) is not None:
            return [_NAMES.get(name, name) for name in command[1].split(",")]
    return []


def _row(line: str, names: list[str]) -> Row | None:
    cells = [_seconds(cell) for cell in line.split(maxsplit=max(len(names) - 1, 0))]
    numbers = [cell for name, cell in zip(names, cells, strict=False) if name not in _TEXTS]
    if len(cells) != len(names) or not numbers or not all(map(is_number, numbers)):
        return None
    return dict(zip(names, cells, strict=True))


def _seconds(cell: str) -> str:
    """`[[days-]hours:]minutes:seconds` in seconds, another cell as it is."""
    found = _ELAPSED.fullmatch(cell)
    if found is None:
        return cell
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return str(((days * 24 + hours) * 60 + minutes) * 60 + seconds)

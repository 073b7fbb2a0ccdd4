"""Names the columns of a table by its title: below `Memory before / after each call (MB)`, `before`
and `after` become `memory_before_MB` and `memory_after_MB`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.column_names import take_apart
from memdiag.values.measurements import Unit

# In brackets, or behind `in`; no amount and no rate.
_UNIT = re.compile(
    r"(?:[(\[](?:[^()\[\]0-9]{0,40}[ ,;/])?|\bin |, ?)([KMGT]i?B)(?=[)\] ,;:.]|$)(?! /| per\b)"
)
_WORD = re.compile(r"[^\W\d_]+")
_MARKS_OF_RULES = b"-=+|: \t\r"
_NUMBER = re.compile(r"[-+]?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_DELIMITERS = "|\t;,"
_LONGEST_TITLE = 200
# Lines between a title and the names: blank, or a rule.
_LINES_BETWEEN = 2
_ROWS_AT_LEAST = 4
_ROWS_LOOKED_AT = 60


def with_titles(lines: list[bytes]) -> list[bytes]:
    """The lines, with what a title says in the names below it, if none of them is of memory."""
    named = [*lines]
    for at, line in enumerate(lines):
        unit = _unit_of_memory(_text(line)) if len(line) <= _LONGEST_TITLE else ""
        if not unit or (header := _header(lines, at + 1)) is None:
            continue
        if (names := _names(lines, header)) is None:
            continue
        named[header] = "".join(_with_unit(_text(lines[header]), names, unit)).encode()
        if b"|" not in lines[header] and _is_rule(lines[header + 1]):
            named[header + 1] = b""  # it is of other widths than the names
    return named


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")


def _unit_of_memory(title: str) -> str:
    """The unit in a title that has a word of memory, "" in other lines."""
    found = _UNIT.search(title)
    words = _WORD.findall(title) if found is not None else []
    is_of_memory = any(_is_amount(word) and not recognise(word).by_unit for word in words)
    return found[1] if found is not None and is_of_memory else ""


def _is_amount(name: str) -> bool:
    meaning = recognise(name)
    return meaning.part is Part.METRIC and meaning.unit is not Unit.COUNT


def _header(lines: Sequence[bytes], start: int) -> int | None:
    """The first line below a title that is neither blank nor a rule."""
    near = range(start, min(start + _LINES_BETWEEN + 1, len(lines)))
    return next((at for at in near if not _is_rule(lines[at])), None)


def _is_rule(line: bytes) -> bool:
    """Return True for a blank line, too."""
    return not line.strip(_MARKS_OF_RULES)


def _names(lines: Sequence[bytes], header: int) -> list[str] | None:
    """The names above columns of numbers. None without a table, or if a name says itself that it is
    of memory.
    """
    line = _text(lines[header])
    delimiter = next((mark for mark in _DELIMITERS if mark in line), "")
    below = lines[header + 1 : header + 1 + _ROWS_LOOKED_AT]
    below = below[1:] if below and _is_rule(below[0]) else below
    rows = [_cells(_text(row), delimiter) for row in takewhile(bytes.strip, below)]
    rows = list(takewhile(lambda row: all(map(_NUMBER.fullmatch, row[1:])), rows))
    if len(rows) < _ROWS_AT_LEAST or {len(row) for row in rows} != {len(rows[0])}:
        return None
    names = line.split() if not delimiter else _cells(line, delimiter)
    names = names if len(names) == len(rows[0]) else re.split(r"\s{2,}", line.strip())
    if len(names) != len(rows[0]) or any(map(_is_amount, names)):
        return None
    return names if all(name and not re.search("[0-9]", name) for name in names) else None


def _cells(line: str, delimiter: str) -> list[str]:
    line = line.strip().strip("|")
    return [cell.strip() for cell in line.split(delimiter)] if delimiter else line.split()


def _with_unit(line: str, names: Sequence[str], unit: str) -> Iterator[str]:
    """The parts of the line, with the unit in names that say nothing themselves; the first column
    is what the others are of.
    """
    end = 0
    for number, name in enumerate(names):
        at = line.index(name, end)
        yield line[end:at]
        end = at + len(name)
        full = f"memory_{'_'.join(take_apart(name).words)}_{unit}"
        is_known = not number or recognise(name).part is not Part.OTHER or not _is_amount(full)
        yield name if is_known else full
    yield line[end:]

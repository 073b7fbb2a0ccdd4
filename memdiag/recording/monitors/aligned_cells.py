"""Rows whose cells have blanks, or are empty: a cell belongs to the column whose name is above it.

NAME   HOST   PORTS  STATUS          REFRESHED  MEM USE
osd.3  ceph2         running (119m)  5m ago       3605M
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_CELL = re.compile(r"\S+(?: \S+)*")
_WORD = re.compile(r"\S+")
_NAME = "name"  # of a column without one

Name = tuple[str, int, int]  # with where it begins and ends


def words_of(header: str) -> list[Name]:
    """Names of one word each."""
    return [(word[0], *word.span()) for word in _WORD.finditer(header)]


def names_of(header: str, rows: Sequence[str]) -> list[Name]:
    """Names between two blanks. Where rows have several cells below one, its words are names; where
    they all begin before the first, their first cells are the name of what they are of.
    """
    cells = [[cell.span() for cell in _CELL.finditer(row)] for row in rows if row.strip()]
    names: list[Name] = []
    for found in _CELL.finditer(header):
        name = (found[0], *found.span())
        is_one = all(sum(_overlap(name, *cell) > 0 for cell in row) < 2 for row in cells)
        words = [name] if is_one else words_of(found[0])
        shift = 0 if is_one else found.start()
        names += [(word, begin + shift, end + shift) for word, begin, end in words]
    before = [row[0] for row in cells]
    if before and all(_overlap(names[0], *cell) < 0 for cell in before):
        names.insert(0, (_NAME, 0, min(end for _, end in before)))
    return names


def cells_below(names: Sequence[Name], line: str) -> list[str]:
    """The cells of a row, "" for a name without one. Each is of the nearest name; a word that
    begins or ends with a name begins another cell.
    """
    spans: list[tuple[int, int] | None] = [None] * len(names)
    pieces: dict[int, int] = {}
    is_apart = False
    begins, name_ends = {begin for _, begin, _ in names}, {end for _, _, end in names}
    for cell in _CELL.finditer(line):
        words = list(_WORD.finditer(line, cell.start(), cell.end()))[1:]
        cuts = [w.start() for w in words if w.start() in begins or w.end() in name_ends]
        for begin, end in pairwise([cell.start(), *cuts, cell.end()]):
            at = max(range(len(names)), key=lambda n: _overlap(names[n], begin, end))
            before = spans[at]
            spans[at] = (begin if before is None else before[0], end)
            is_apart |= before is not None and line[before[1] : begin].startswith("  ")
            pieces[begin] = end
    if is_apart and len(pieces) == len(names):  # beside their names
        spans = list(pieces.items())
    return ["" if span is None else line[slice(*span)].strip() for span in spans]


def _overlap(name: Name, begin: int, end: int) -> int:
    """How many characters of a cell are below a name; negative if it is beside it."""
    return min(end, name[2]) - max(begin, name[1])

"""Tables of MediaWiki (`{| ... |}`) and AsciiDoc (`|===`), as rows of cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_BEGINS, _ENDS, _ROW, _CAPTION = "{|", "|}", "|-", "|+"
_ASCIIDOC = "|==="
# Of a cell in MediaWiki: `style="..." | 12`.
_ATTRIBUTES = re.compile(r"[^|\[{]*=[^|]*\|(?!\|)")
_ESCAPED = re.compile(r"(?<!\\)\|")
# The number of columns: `cols="1,1,2"`, `cols="3*"`.
_COLUMNS = re.compile(r"""cols\s*=\s*["']?([^"'\]]+)""")
_REPEATED = re.compile(r"([0-9]+)\*")


def has_wiki_tables(text: bytes) -> bool:
    """Return True if a line begins or ends such a table."""
    return re.search(rb"(?m)^(?:\{\||\|={3,}\s*$)", text) is not None


def wiki_tables(lines: Sequence[str]) -> Iterator[tuple[int, list[list[str]]]]:
    """The line of each table, counted from 1, and its rows of cells."""
    begin = -1
    for at, line in enumerate(map(str.strip, lines)):
        if begin >= 0 and line.startswith((_ENDS, _ASCIIDOC)):
            inside = lines[begin + 1 : at]
            is_asciidoc = line.startswith(_ASCIIDOC)
            rows = _asciidoc_rows(inside, lines[begin - 1]) if is_asciidoc else _wiki_rows(inside)
            yield begin + 1, rows
            begin = -1
        elif line.startswith((_BEGINS, _ASCIIDOC)):
            begin = at


def _wiki_rows(lines: Sequence[str]) -> list[list[str]]:
    rows: list[list[str]] = [[]]
    for line in map(str.strip, lines):
        if line.startswith(_ROW):
            rows.append([])
        elif line[:1] in {"|", "!"} and not line.startswith(_CAPTION):
            separator = "!!" if line[0] == "!" else "||"
            cells = line[1:].replace("!!", separator).split(separator)
            rows[-1] += [_ATTRIBUTES.sub("", cell, count=1).strip(" '") for cell in cells]
    return [row for row in rows if row]


def _asciidoc_rows(lines: Sequence[str], above: str) -> list[list[str]]:
    """The cells in rows of as many as the line above says, else as the first row has in its line.

    above: the line above the table.
    """
    filled = [line for line in lines if "|" in line]
    cells = [cell.strip(" *`_") for line in filled for cell in _ESCAPED.split(line)[1:]]
    width = _width(above) or len(_ESCAPED.split(filled[0])[1:]) if filled else 0
    return [cells[at : at + width] for at in range(0, len(cells), width)] if width else []


def _width(attributes: str) -> int:
    found = _COLUMNS.search(attributes)
    if found is None:
        return 0
    repeated = (_REPEATED.match(part.strip()) for part in found[1].split(","))
    return sum(int(one[1]) if one is not None else 1 for one in repeated)

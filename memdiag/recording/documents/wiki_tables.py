"""Tables of MediaWiki (`{| ... |}`), AsciiDoc (`|===`), DokuWiki (`^ step ^`), Textile
(`|_. step |`), Jira, MoinMoin and Trac (`||step||`) and BBCode (`[tr][td]`), as rows of cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

_BEGINS, _ENDS, _ROW, _CAPTION = "{|", "|}", "|-", "|+"
_ASCIIDOC = "|==="
# Of a cell in MediaWiki: `style="..." | 12`.
_ATTRIBUTES = re.compile(r"[^|\[{]*=[^|]*\|(?!\|)")
_ESCAPED = re.compile(r"(?<!\\)\|")
# The number of columns: `cols="1,1,2"`, `cols="3*"`.
_COLUMNS = re.compile(r"""cols\s*=\s*["']?([^"'\]]+)""")
_REPEATED = re.compile(r"([0-9]+)\*")
# The headers of DokuWiki, of Textile, in which marks begin a cell: `>. 12`, `_. step`, and of Jira.
_HEADER = re.compile(r"\^[^\^]+\^.*|\|_[<>=]?\. .*|\|\|[^|].*\|\|")
_MARKS = re.compile(r"^[_<>=~^-]{1,3}\. +")
_MARKUP = re.compile(r"%\{[^}]*\}|\{color[^}]*\}|\{\*\}|%|\*\*|''")
_BBCODE = re.compile(r"\[(/?)(table|tr|t[dh])\]", re.I)


def has_wiki_tables(text: bytes) -> bool:
    """Return True if a line begins or ends such a table."""
    begins = rb"(?m)^(?:\{\||\|={3,}\s*$|\^[^^\n]+\^|\|_[<>=]?\. |[ \t]{0,8}\|\|[^|\n]+\|\|)"
    return re.search(begins, text) is not None


def with_html(text: str) -> str:
    """The text with tables of BBCode as those of HTML."""
    return _BBCODE.sub(r"<\1\2>", text)


def wiki_tables(lines: Sequence[str]) -> Iterator[tuple[int, list[list[str]]]]:
    """The line of each table, counted from 1, and its rows of cells."""
    begin, end = -1, 0
    for at, line in enumerate(map(str.strip, lines)):
        if begin >= 0 and line.startswith((_ENDS, _ASCIIDOC)):
            inside = lines[begin + 1 : at]
            is_asciidoc = line.startswith(_ASCIIDOC)
            rows = _asciidoc_rows(inside, lines[begin - 1]) if is_asciidoc else _wiki_rows(inside)
            yield begin + 1, rows
            begin = -1
        elif line.startswith((_BEGINS, _ASCIIDOC)):
            begin = at
        elif begin < 0 and at >= end and _HEADER.fullmatch(line):
            rows = _rows_below(lines, at)
            end = at + len(rows)
            yield at + 1, rows


def _rows_below(lines: Sequence[str], header: int) -> list[list[str]]:
    """The header's cells and those of the lines below it that begin with a bar."""
    others = (lines[at] for at in range(header + 1, len(lines)))
    below = takewhile(lambda line: line.lstrip().startswith("|"), others)
    rows = (line.strip().replace("^", "|") for line in (lines[header], *below))
    rows = (row.replace("||", "|") if row.startswith("||") else row for row in rows)
    cells = (row.removeprefix("|").removesuffix("|").split("|") for row in rows)
    return [[_MARKUP.sub("", _MARKS.sub("", c.strip())).strip(" *=") for c in row] for row in cells]


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

"""Lines of text: wrapping, columns, indentation. Every line is a rich Text without markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.text import Text

INDENT = 1
_NUMBER = re.compile(r"[(+-]*[\d,.]+")
_GLUED = re.compile(r"(?:[KMGTP]?B|%|ms|s|min|h|d|±|\+-)[^\w]*(?:/\w+)?[,.;:)]*")


def paragraph(text: str, width: int, *, lead: str = "", hanging: int = 0) -> list[Text]:
    """`text` wrapped to `width`, indented by INDENT; `lead` goes before it in bold.

    hanging: cells by which the second and later lines are indented further.
    """
    whole = f"{lead} {text}" if lead else text
    rows = _wrap(whole, width - INDENT, hanging)
    lines = [Text(" " * (INDENT + (hanging if at else 0)) + row) for at, row in enumerate(rows)]
    left = len(lead)
    for line, row in zip(lines, rows, strict=True):
        start = len(line) - len(row)
        line.stylize("bold", start, start + min(max(left, 0), len(row)))
        left -= len(row) + 1
    return lines


def _wrap(text: str, width: int, hanging: int) -> list[str]:
    rows: list[str] = []
    row = ""
    for word in _words(text):
        room = width - (hanging if rows else 0)
        if row and cell_len(row) + 1 + cell_len(word) <= room:
            row = f"{row} {word}"
            continue
        if row:
            rows.append(row)
        *full, row = chop_cells(word, width - hanging) if cell_len(word) > room else [word]
        rows.extend(full)
    return [*rows, row] if row else rows


def _words(text: str) -> list[str]:
    """Words, a number and its unit kept together, and a probability."""
    words: list[str] = []
    glue = False
    for word in text.split(" "):
        if not word:
            continue
        glued = glue and (_GLUED.fullmatch(word) is not None or words[-1].endswith(("±", "+-")))
        if glued or (words and _is_probability(words[-1], word)):
            words[-1] += f" {word}"
        else:
            words.append(word)
        glue = _NUMBER.fullmatch(word) is not None or (glued and word in {"±", "+-"})
    return words


def _is_probability(before: str, word: str) -> bool:
    """`p = .004` stands together."""
    return (before.lstrip("(") == "p" and word in {"=", "<"}) or before.endswith(("p =", "p <"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """title: printed above. right: numbers align at their end."""

    title: str
    right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A table without lines. Rows have one Text per column."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]
    gap: int = 3

    @property
    def width(self) -> int:
        """Cells of a line, with its indent."""
        return INDENT + sum(self._widths()) + self.gap * (len(self.columns) - 1)

    def lines(self) -> list[Text]:
        """Title line and rows, without trailing blanks."""
        widths = self._widths()
        titles = [Text(column.title, "italic") for column in self.columns]
        return [self._line(cells, widths) for cells in [titles, *self.rows]]

    def _widths(self) -> list[int]:
        titles = [cell_len(column.title) for column in self.columns]
        return [
            max([title, *(row[at].cell_len for row in self.rows)])
            for at, title in enumerate(titles)
        ]

    def _line(self, cells: Sequence[Text], widths: Sequence[int]) -> Text:
        line = Text(" " * INDENT)
        for at, (cell, width, column) in enumerate(zip(cells, widths, self.columns, strict=True)):
            blanks = " " * (width - cell.cell_len)
            line.append(" " * self.gap if at else "")
            line.append_text(Text(blanks) + cell if column.right else cell + Text(blanks))
        line.rstrip()
        return line


def joined(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = list(names)
    return f"{', '.join(most)} and {last}" if most else last

"""Lines of text: wrapping, tables, indentation. Every line is a rich Text without markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.text import Text

INDENT = 1
# The label of a fact and the blank after it.
LABEL_CELLS = 9
_NUMBER = re.compile(r"[(+-]*[\d,.]+")
_GLUED = re.compile(r"(?:[KMGTP]?B|ms|s|min|h|d|±|\+-)[^\w]*(?:/\w+)?[,.;:)]*")


def paragraph(text: str, width: int, *, lead: str = "", hanging: int | None = None) -> list[Text]:
    """`text` wrapped to `width`, indented by INDENT; `lead` goes before it in bold.

    hanging: further indent of the second and later lines, by default 2 with a lead and else 0.
    """
    if hanging is None:
        hanging = 2 if lead else 0
    whole = f"{lead} {text}" if lead else text
    rows = _wrap(whole, width - INDENT, hanging)
    lines = [Text(" " * (INDENT + (hanging if at else 0)) + row) for at, row in enumerate(rows)]
    left = len(lead)
    for line, row in zip(lines, rows, strict=True):
        start = len(line) - len(row)
        line.stylize("bold", start, start + min(max(left, 0), len(row)))
        left -= len(row) + 1
    return lines


def labeled(label: str, text: str, width: int, *, most_lines: int) -> list[Text]:
    """`text` beside its label, all in the same column; its end is left out after `most_lines`."""
    rows = paragraph(text, width - LABEL_CELLS)
    lines = [Text(" " * LABEL_CELLS) + row for row in rows[:most_lines]]
    head = Text(" " * INDENT) + Text(label, "bold")
    head.append(" " * max(1, LABEL_CELLS + INDENT - head.cell_len))
    lines[0] = head + Text(rows[0].plain[INDENT:])
    if len(rows) > most_lines:
        last = lines[-1]
        last.truncate(width - 4, overflow="crop")
        last.rstrip()
        last.append(" ...")
    return lines


def rule(title: str, width: int, stroke: str) -> Text:
    """A line across the report with a title in it."""
    head = f"{stroke * 2} {title} "
    return Text(head + stroke * max(0, width - cell_len(head)), "dim")


def paragraphs(texts: Iterable[str], width: int, *, lead: str = "") -> list[Text]:
    """A paragraph for each text, all with the same lead."""
    return [line for text in texts for line in paragraph(text, width, lead=lead)]


def badge(word: str, style: str, text: str, width: int, *, right: str = "") -> list[Text]:
    """`word` in reverse, bold `text` beside it, and `right` at the end of its line or below."""
    mark = Text(" " * INDENT) + Text(f" {word} ", f"bold reverse {style}")
    rows = paragraph(text, width - mark.cell_len - 1)
    lines = [
        (mark if at == 0 else Text(" " * mark.cell_len)) + Text(f" {row.plain}", "bold")
        for at, row in enumerate(rows)
    ]
    room = width - lines[-1].cell_len - cell_len(right)
    if right and room < 2:
        return lines + paragraphs([right], width)
    lines[-1].append(" " * room + right if right else "")
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
    """Words; a number and its unit stay together, and so does a probability (`p = .004`)."""
    words: list[str] = []
    glue = False
    for word in text.split():
        glued = glue and (_GLUED.fullmatch(word) is not None or words[-1].endswith(("±", "+-")))
        if glued or (words and _is_probability(words[-1], word)):
            words[-1] += f" {word}"
        else:
            words.append(word)
        glue = _NUMBER.fullmatch(word) is not None or (glued and word in {"±", "+-"})
    return words


def _is_probability(before: str, word: str) -> bool:
    return (before.lstrip("(") == "p" and word in {"=", "<"}) or before.endswith(("p =", "p <"))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. right: its cells are aligned at their end."""

    title: str
    cells: Sequence[Text]
    right: bool = False


def table(columns: Sequence[Column], *, gap: int = 3) -> list[Text]:
    """A title line and a line for each row, without rules and trailing blanks."""
    lines = [Text(" " * INDENT) for _ in (None, *columns[0].cells)]
    for at, column in enumerate(columns):
        cells = [Text(column.title, "italic"), *column.cells]
        width = max(cell.cell_len for cell in cells)
        for line, cell in zip(lines, cells, strict=True):
            blanks = Text(" " * (width - cell.cell_len))
            line.append(" " * gap if at else "")
            line.append_text(blanks + cell if column.right else cell + blanks)
    for line in lines:
        line.rstrip()
    return lines


def first_fitting(tables: Iterable[list[Text]], width: int) -> list[Text]:
    """The first table whose lines fit into `width`, else the last one."""
    lines: list[Text] = []
    for lines in tables:
        if all(line.cell_len <= width for line in lines):
            break
    return lines


def joined(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *most, last = list(names)
    return f"{', '.join(most)} and {last}" if most else last


def sentence(text: str) -> str:
    """A clause as a sentence: `it grew` is `It grew.`"""
    return f"{text[:1].upper()}{text[1:]}."

"""Reports the sizes in a log's lines that no series was read from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.textlog.discover_fields import Field
from memdiag.recording.textlog.number_spans import (
    ARROW,
    NUMBER,
    OF_TOTAL,
    SIZE_UNIT,
    numbers_in,
)
from memdiag.values.measurements import NOT_READ
from memdiag.values.sanitize import printable

_SIZE = re.compile(
    rf"(?<![A-Za-z0-9_.])([0-9]+,[0-9]{{1,2}}|{NUMBER})[ ]?{SIZE_UNIT}"
    r"(?:-[A-Za-z]+)*(?![A-Za-z0-9_])(?:/s\b)?"
)
# A number and a word of memory, in any order, as in "estimated size (MB): 813".
_OF_MEMORY = re.compile(
    r"(?i)(?=.*(?<![\w-])[0-9])(?:.*[(\[][kmgt]i?b[)\]]|.*(?<![a-z])(?:mem(?:ory)?|rss|vram|alloc\w*)(?![a-z]))"
)
# Numbers without units or names behind another.
_ROW = re.compile(rf"(?:\s+{NUMBER}(?=\s|$)){{2,}}")
_LATER = re.compile(ARROW)
_STARTS = re.compile(r"[,;|{(\t]|\s-\s|\.\s|->")
_FIGURES = re.compile("[0-9]+(?:[.,][0-9]+)*")
_AFTER_NAME = " :=\t"
_IN_WORDS = re.compile(r"\s*[^\s0-9+.]")
# Of a form, in which each figure is a zero: not `0`, `0MB` or `0/0GB,`.
_IN_FIGURES = re.compile(r"(?=\s*\S*0)(?!\s*[(\[]?[+\-~]?0(?:/0)?[A-Za-z%]*[)\],;.]*(?:\s|$))")
_GROWS = re.compile(
    r"(?i)\b(?:extend|expand|grow|grew|enlarg|increas)[a-z]{0,4}\b[^0-9]{1,80}\bto\b[^0-9]{0,8}$"
)
_LONGEST = 64
_SHOWN = 4


def left_out(
    lines: Iterable[str], metrics: Sequence[Field], axes: Sequence[Field], *, own: bool
) -> tuple[str, ...]:
    """A note with an example of each kind of size that is in no field, () if there are none.

    own: readings are only in lines with a position.
    """
    examples: dict[str, str] = {}
    for line in lines:
        here = [place[0] for field in axes if (place := field.find(line)) is not None]
        for text in _unread(line, metrics if here or not own else (), here):
            examples.setdefault(re.sub(r"[^A-Za-z]+", " ", text), text)
    if not examples:
        return ()
    # (Of JSON without the quote before a name.)
    texts = (printable(text).lstrip('"') for text in list(examples.values())[:_SHOWN])
    shown = ", ".join(f'"{text}"' for text in texts)
    more = f" and {len(examples) - _SHOWN} more" if len(examples) > _SHOWN else ""
    return (NOT_READ + shown + more,)


def share_left_out(
    lines: Iterable[str], metrics: Sequence[Field], axes: Sequence[Field], *, own: bool
) -> float:
    """The share of sizes that are not read in the lines of readings, without increments and remarks
    in brackets; 0 if a name, or the total of a single one, shows which is in use. A name before a
    row of numbers is that of the whole row.
    """
    lines = list(lines)
    if not all(field.by_unit for field in metrics):
        return _share_in_rows(lines, metrics)
    are_parts = not any(field.is_guessed for field in metrics)
    here = [line for line in lines if _has_any(line, metrics)]
    here = [line for line in here if _has_any(line, axes)] if own else here
    sizes = sum(
        not line[: size.start(1)].endswith("(")
        and line[size.start(1)] not in "+-"
        and (not are_parts or OF_TOTAL.match(line, size.end()) is not None)
        for line in here
        for size in _SIZE.finditer(line)
    )
    return 1 - len(here) / sizes if sizes > len(here) else 0.0


def of_growth_alone(
    lines: Mapping[str, int], metrics: Sequence[Field]
) -> tuple[tuple[str, ...], float]:
    """A note and 1 if most readings are of what grows at that moment, `Extending reserved space to
    5504 MB`: whether it stays the same is then not logged. Else nothing.

    lines: one of each form, with the number of its lines.
    """
    grows: Counter[bool] = Counter()
    for line, often in lines.items():
        for place in filter(None, (field.find(line) for field in metrics)):
            grows[_GROWS.search(line[: place[0][0]]) is not None] += often
    if grows[True] <= grows[False]:
        return (), 0.0
    return ("only growth is logged: that it stays the same is not",), 1.0


def without_number(
    lines: Mapping[str, int], metrics: Sequence[Field]
) -> tuple[tuple[str, ...], float]:
    """Notes about fields that have something else than a number in some lines, and the largest
    share of readings that are figures which cannot be read: "gpu mem 800|900MB". Words ("gpu mem
    n/a") say that there is no reading.

    lines: one of each form, with the number of its lines.
    """
    notes: tuple[str, ...] = ()
    most = 0.0
    for field in metrics:
        words, figures = _without_number(lines, field)
        name, left_out = printable(field.name), "of its readings"
        if words:
            notes += (f"{name}: {words:.0%} {left_out} are words instead of numbers: left out",)
        if figures:
            notes += (f"{name}: {figures:.0%} {left_out} cannot be read: left out",)
        most = max(most, figures)
    return notes, most


def _without_number(lines: Mapping[str, int], field: Field) -> tuple[float, float]:
    """The shares of words and of figures that cannot be read."""
    name = field.name.rpartition("(")[0].strip() or field.name
    read = words = figures = 0
    starts: set[str] = set()
    others: list[tuple[str, int]] = []
    for line, often in lines.items():
        if (place := field.find(line)) is None:
            others.append((_form(line), often))
        else:
            start = _form(line[: place[0][0]])
            read += often
            starts |= {start} if start.rstrip(_AFTER_NAME).endswith(name) else set()
    for form, often in others if starts else ():
        rests = [form.removeprefix(start) for start in starts if form.startswith(start)]
        if any(map(_IN_FIGURES.match, rests)):
            figures += often
        elif any(map(_IN_WORDS.match, rests)):
            words += often
    told = read + words + figures
    return (words / told, figures / told) if read else (0.0, 0.0)


def _form(line: str) -> str:
    return _FIGURES.sub("0", line)


def _share_in_rows(lines: Sequence[str], metrics: Sequence[Field]) -> float:
    """The share of numbers that are not read of `Mem: 64215 9145 47033`, 0 if most have names."""
    found = sum(field.find(line) is not None for line in lines for field in metrics)
    rows = [len(row.split()) for line in lines for row in _rows_behind(line, metrics)]
    return 1 - len(rows) / (len(rows) + sum(rows)) if len(rows) * 2 > found else 0.0


def _rows_behind(line: str, metrics: Sequence[Field]) -> list[str]:
    """The numbers without names that follow the reading of a field without a unit."""
    places = [place for field in metrics if (place := field.find(line)) is not None]
    rows = (_ROW.match(line, end) for (_, end), unit in places if not unit)
    return [row.group().strip() for row in rows if row is not None]


def _has_any(line: str, fields: Sequence[Field]) -> bool:
    return any(field.find(line) is not None for field in fields)


def _unread(line: str, metrics: Sequence[Field], axes: Sequence[tuple[int, int]]) -> list[str]:
    """The sizes of a line that no field takes; the line itself if it is about memory.

    axes: the places of its positions.
    """
    found = [place[0] for field in metrics if (place := field.find(line)) is not None]
    sizes = list(_SIZE.finditer(line))
    read = [*found, *axes]
    unread = [
        size
        for size in sizes
        if not any(a < size.end(1) and size.start(1) < b for a, b in read)
        and not _LATER.match(line, size.end())
    ]
    named = [number.place for number in numbers_in(line) if number.place.kind == "label"]
    labels = [
        place.text
        for place in named
        if _is_of_allocations(place.text)
        or (recognise(place.text).by_unit and not any(field.by_unit for field in metrics))
    ]
    if unread or labels or sizes or found or _OF_MEMORY.match(line) is None:
        rows = _rows_behind(line, metrics)
        return [_around(line, size) for size in unread] + labels + rows
    return [line.strip()[:_LONGEST].strip()]


def _is_of_allocations(label: str) -> bool:
    """Return True for a number that allocations name and that is no amount in use."""
    if recognise(label).part is not Part.OTHER:
        return False
    return any(word.startswith("alloc") for word in take_apart(label).words)


def _around(line: str, size: re.Match[str]) -> str:
    """The size with the words that belong to it."""
    words = line[: size.start()]
    if line[size.end() :].startswith(")"):  # "saved weights (412 MB)"
        words = words.rstrip("( ")
    before = _STARTS.split(words)[-1] + line[len(words) : size.start()]
    if before.strip("( "):
        return f"{before}{size.group()}"[-_LONGEST:].strip()
    behind = _STARTS.split(line[size.end() :])[0].rstrip()  # "3.2 GB allocated cumulatively"
    if behind:
        return f"{size.group()}{behind}"[:_LONGEST].strip()
    return line[: size.end()][-_LONGEST:].strip()

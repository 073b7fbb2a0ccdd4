"""The shape that most lines of a log have: one search finds all their figures.

A trainer prints the same words again and again around its figures. In a line that differs from one
seen before in nothing but digits, each field's pattern finds what it found there: so all figures
can be taken from their places at once. All other lines are searched field by field.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memdiag.recording.textlog.discover_fields import Field
from memdiag.values import units

_DIGITS = r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_FIGURE = re.compile(rf"(?<![\w.]){_DIGITS}")
_WHOLE, _DECIMAL = "[0-9]+", r"[0-9]+\.[0-9]+"
# So many of the lines that were looked at have the shape; else it would mostly be tried in vain.
_SHARE = 0.25
_TRIED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """pattern: for `str.extract_groups`.
    figures: for each field the number of its group (from 1), and what its figures are multiplied
        by: the bytes of their unit, or 1.
    """

    pattern: str
    figures: tuple[tuple[int, float], ...]


def find_shape(lines: Sequence[str], fields: Sequence[Field]) -> Shape | None:
    """The shape of many of these lines, with a figure for every field; None if there is none."""
    alike: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for line in lines:
        words = _FIGURE.sub("0", line)
        counts[words] += 1
        alike.setdefault(words, line)
    for words, count in counts.most_common(_TRIED):
        shape = _shape_of(alike[words], fields)
        if shape is not None and count >= _SHARE * len(lines):
            return shape
    return None


def _shape_of(line: str, fields: Sequence[Field]) -> Shape | None:
    """This line but for its digits, up to behind its last field; None where it lacks one."""
    found = [re.search(field.pattern, line) for field in fields]
    matches = [match for match in found if match is not None]
    if not matches or len(matches) < len(fields):
        return None
    # Digits in a name are no figure: "rss(0step" is another field than "rss(1step".
    if any(
        figure.start() < match.start(1) and figure.end() > match.start()
        for figure in _FIGURE.finditer(line)
        for match in matches
    ):
        return None
    places = sorted({match.span(1) for match in matches})
    if not all(_is_plain(line, *place) for place in places):
        return None
    end = 1 + max(match.end() for match in matches)  # with what ends the last
    numbers = {place: number for number, place in enumerate(places, 1)}
    return Shape(
        pattern=_pattern(line[:end], places) + ("" if end <= len(line) else "$"),
        figures=tuple((numbers[m.span(1)], _factor(m.group(2))) for m in matches),
    )


def _is_plain(line: str, begin: int, end: int) -> bool:
    """No sign, no thousands ("5,100" may be one figure, "1234,100" is two), no part of "8.5x"."""
    plain = re.fullmatch(rf"{_WHOLE}|{_DECIMAL}", line[begin:end])
    return plain is not None and re.match(r"[.,][0-9]", line[end:]) is None


def _factor(unit: str | None) -> float:
    return float(units.bytes_per_unit(unit or "") or 1)


def _pattern(text: str, places: Sequence[tuple[int, int]]) -> str:
    parts, at = ["^"], 0
    for begin, end in places:
        parts.append(_without_figures(text, at, begin))
        parts.append(f"({_DECIMAL if '.' in text[begin:end] else _WHOLE})")
        at = end
    return "".join([*parts, _without_figures(text, at, len(text))])


def _without_figures(text: str, begin: int, end: int) -> str:
    """What stands there, with any digits in the place of its own."""
    parts = []
    for match in _FIGURE.finditer(text, begin, end):
        parts += [re.escape(text[begin : match.start()]), _DIGITS]
        begin = match.end()
    return "".join([*parts, re.escape(text[begin:end])])

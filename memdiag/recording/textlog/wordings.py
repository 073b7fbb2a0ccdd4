"""Keeps readings of different moments apart by the words before them.

"loaded model, RSS 5.0 GB" and "unloaded model, RSS 0.8 GB" have one label but are two series.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.textlog.discover_fields import SEEN_AT_LEAST, Field
from memdiag.recording.textlog.number_spans import UNIT
from memdiag.recording.textlog.search_lines import TAGS
from memdiag.values import units

# More wordings are names of things, not of moments.
_WORDINGS_AT_MOST = 4
# The moves of the whole, of the sum of those of its parts: each part of a rising amount has nearly
# the range of the whole. And the range, of the moves of the whole. Heuristic.
_SMOOTHER = 0.8
# This share of the lines may have other words.
_SHARE = 0.02
_WITH_UNIT = re.compile(rf"[0-9][ ]?{UNIT}(?!\w)")
_WORDS = re.compile(r"(?<!\w)[^\W\d_]{2,}(?:[_-][^\W\d_]+)*(?!\w)")


def by_wording(fields: Sequence[Field], lines: Sequence[str]) -> list[Field]:
    """The fields, with one for each wording of the lines in which a reading of memory occurs.

    lines: some lines of the log. Only if there are few wordings, each of which, but for one, has a
    word that no other has.
    """
    return [part for field in fields for part in _parts(field, lines, fields)]


def _parts(field: Field, lines: Sequence[str], fields: Sequence[Field]) -> list[Field]:
    if field.meaning.part is not Part.METRIC:
        return [field]
    seen: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        if (found := field.find(line)) is not None:
            seen[_wording(line[: found[0][0]])] += 1
    often = [words for words, n in seen.items() if n >= max(SEEN_AT_LEAST, _SHARE * len(lines))]
    others = seen.total() - sum(seen[words] for words in often)
    if not 1 < len(often) <= _WORDINGS_AT_MOST or others > _SHARE * seen.total():
        return [field]
    own = {words: _own_name(field, words, often) for words in often}
    if sum(one is None for one in own.values()) > 1 or _are_of_one(field, lines):
        return [field]
    parts = [_with_word(field, one) for one in own.values() if one is not None]
    if not any(part.meaning.part is Part.METRIC for part in parts):
        return [field]
    named = [other for other in fields if other is not field]
    parts = [part for part in parts if not any(_finds(one, part, lines) for one in named)]
    if None in own.values():  # "Heap Memory" beside "Off Heap Memory"
        parts.append(replace(field, others=(*field.others, *(part.pattern for part in parts))))
    return parts


def _are_of_one(field: Field, lines: Sequence[str]) -> bool:
    """Return True if the readings of all wordings make a line in one direction, and a smoother one
    than those of each: people write of one amount in several ways.
    """
    values: list[float] = []
    parts: dict[tuple[str, ...], list[float]] = {}
    for line in lines:
        if (found := field.find(line)) is not None:
            (begin, end), unit = found
            value = float(line[begin:end].replace(",", "")) * (units.bytes_per_unit(unit) or 1)
            values.append(value)
            parts.setdefault(_wording(line[:begin]), []).append(value)
    moves = _variation(values)
    is_one_way = bool(values) and abs(values[-1] - values[0]) > _SMOOTHER * moves
    return is_one_way and moves < _SMOOTHER * sum(map(_variation, parts.values()))


def _variation(values: Sequence[float]) -> float:
    return sum(abs(b - a) for a, b in pairwise(values))


def _finds(field: Field, part: Field, lines: Sequence[str]) -> bool:
    """Return True if a field finds all numbers of a part of another: "heap left by full GC"."""
    places = [(part.find(line), line) for line in lines]
    return all(place is None or field.find(line) == place for place, line in places)


def _own_name(field: Field, words: Sequence[str], often: Iterable[Sequence[str]]) -> str | None:
    """The first word that the other wordings do not have, rather one with which the field's name is
    that of a reading of memory; None if there is none.
    """
    elsewhere = {word for others in often if others != words for word in others}
    own = [word for word in words if word not in elsewhere]
    named = (w for w in own if recognise(f"{w} {field.name}").part is Part.METRIC)
    return next(named, next(iter(own), None))


def _with_word(field: Field, word: str) -> Field:
    """The field in the lines with this word before it."""
    before = rf"(?:^|[^\w]){re.escape(word)}\b.*?"
    name = f"{word} {field.name}"
    return replace(
        field,
        name=name,
        meaning=recognise(name),
        pattern=before + field.pattern,
        quick=before + field.quick if field.quick else "",
    )


def _wording(text: str) -> tuple[str, ...]:
    """The words of a text, without tags, units of numbers, AM and PM."""
    text = _WITH_UNIT.sub(" ", text)
    for pattern in (pattern for patterns in TAGS.values() for pattern in patterns):
        text = re.sub(pattern, " ", text)
    return tuple(word for word in _WORDS.findall(text) if word not in {"AM", "PM"})

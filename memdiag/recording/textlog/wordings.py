"""Keeps readings of different moments apart by the words before them.

"loaded model, RSS 5.0 GB" and "unloaded model, RSS 0.8 GB" have one label but are two series.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.textlog.discover_fields import SEEN_AT_LEAST, Field
from memdiag.recording.textlog.search_lines import TAGS

# More wordings are names of things, not of moments.
_WORDINGS_AT_MOST = 4
# This share of the lines may have other words.
_SHARE = 0.05
_WORDS = re.compile(r"(?<!\w)[^\W\d_]{2,}(?:[_-][^\W\d_]+)*(?!\w)")


def by_wording(fields: Sequence[Field], lines: Sequence[str]) -> list[Field]:
    """The fields, with one for each wording of the lines in which a reading of memory occurs.

    lines: some lines of the log. Only if there are few wordings, each of which has a word that no
    other has.
    """
    return [part for field in fields for part in _parts(field, lines)]


def _parts(field: Field, lines: Sequence[str]) -> list[Field]:
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
    parts = []
    for words in often:
        elsewhere = {word for others in often if others != words for word in others}
        named = ((word, f"{word} {field.name}") for word in words if word not in elsewhere)
        own = next((one for one in named if recognise(one[1]).part is Part.METRIC), None)
        if own is None:
            return [field]
        before = rf"(?:^|[^\w]){re.escape(own[0])}\b.*?"
        quick = before + field.quick if field.quick else ""
        meaning = recognise(own[1])
        parts.append(
            replace(
                field, name=own[1], meaning=meaning, pattern=before + field.pattern, quick=quick
            )
        )
    return parts


def _wording(text: str) -> tuple[str, ...]:
    """The words of a text, without tags, AM and PM."""
    for pattern in (pattern for patterns in TAGS.values() for pattern in patterns):
        text = re.sub(pattern, " ", text)
    return tuple(word for word in _WORDS.findall(text) if word not in {"AM", "PM"})

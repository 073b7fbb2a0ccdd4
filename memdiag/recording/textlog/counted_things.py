"""Numbers that count what a log's lines name: `1000 files - 163.55 MiB`, `tile 1/96  1216MB`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.column_vocabulary import IN_USE, STORES
from memdiag.recording.textlog.number_spans import NUMBER, SIZE_UNIT
from memdiag.values.measurements import AxisKind

LEAST_EPOCH_S = 1e8  # in 1973
# What counts on where a checkpoint was written.
_MAY_RESUME = frozenset({AxisKind.STEP, AxisKind.EPOCH})

# Words of other scripts follow a number without a blank: `1000リクエスト後`.
_OTHER_SCRIPT = r"(?=[^\x00-\x7f])[^\W\d_]{1,24}"
# Of an item: `- 200 files`, `3. 200 files`, `* after 200 files`.
_ITEM = r"[\s*+•-]{0,12}(?:[0-9]{1,3}[.)]\s+)?(?:[Aa]fter\s+)?"
_IN_FRONT = re.compile(
    rf"{_ITEM}([0-9][0-9,]*)"
    rf"(?:\s+([A-Za-z]{{3,}}(?: [a-z]{{3,}}){{0,2}})\b|({_OTHER_SCRIPT})(?!\w))"
)
_OF_ALL = re.compile(
    rf"\W{{0,8}}([A-Za-z]{{3,24}}) #?({NUMBER})(?:/| of )[0-9][0-9,]*(?![0-9.,]*[ ]?{SIZE_UNIT}\b)"
)
# The strides of a count differ by at most this part. Heuristic.
_EVEN = 0.1


def counted_in_front(lines: Sequence[str]) -> tuple[str, str] | None:
    """What the numbers at the start of most lines count by the words behind them, `2000 files`, and
    the pattern of the number; None if they do not count. A number that touches a word of another
    script may be that of a thing, unless it rises by more than one: `1号機`, `1000リクエスト後`.
    """
    there = (one for line in lines if (one := _IN_FRONT.match(line)) is not None)
    found = [(one[2] or one[3], one[1]) for one in there]
    word = _most_common(found, len(lines) / 2)
    if not word or recognise(word).part is Part.METRIC:
        return None
    if word.isascii():
        return word, rf"^{_ITEM}({NUMBER})()\s+{re.escape(word)}\b"
    if max(b - a for a, b in pairwise(_numbers(found, word))) <= 1:
        return None
    return word, rf"^{_ITEM}({NUMBER})(){re.escape(word)}(?:\W|$)"


def counted_of_all(lines: Sequence[str]) -> tuple[str, str] | None:
    """The same of the word that many lines begin with, a number behind it and that of all:
    `tile 1/96`, `tile 2/96`.
    """
    found = [(one[1], one[2]) for line in lines if (one := _OF_ALL.match(line)) is not None]
    word = _most_common(found, len(lines) / 4)
    is_known = recognise(word).part is not Part.OTHER or word.lower() in STORES | IN_USE
    if not word or is_known:
        return None
    return word, rf"^\W{{0,8}}{word} #?({NUMBER})()(?:/| of )[0-9]"


def _most_common(found: Sequence[tuple[str, str]], more_than: float) -> str:
    """The most frequent word if its numbers count, "" otherwise."""
    words = Counter(word for word, _ in found).most_common(1)
    if not words or words[0][1] <= more_than:
        return ""
    word = words[0][0]
    is_known = recognise(word).axis in _MAY_RESUME
    return word if counts(_numbers(found, word), may_resume=is_known) else ""


def _numbers(found: Sequence[tuple[str, str]], word: str) -> list[float]:
    return [float(number.replace(",", "")) for one, number in found if one == word]


def counts(numbers: Sequence[float], *, may_resume: bool = False) -> bool:
    """Return True if the numbers count from about zero, or are times since 1970.

    may_resume: they may count from any number.
    """
    moves = [b - a for a, b in pairwise(numbers)]
    if not moves or min(numbers) >= LEAST_EPOCH_S:
        return bool(moves)
    usual = median(moves)
    even = sum(abs(move - usual) <= _EVEN * usual for move in moves)
    begins = may_resume or numbers[0] <= 2 * usual
    return min(moves) > 0 and begins and even * 2 > len(moves)

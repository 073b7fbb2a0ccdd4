"""The marks in numbers: which one stands before decimals, and which between thousands.

`1,204.5` and `1.204,5` are one number. Which of the two a file means is decided from all of its
numbers at once, by those that can be only one of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from memdiag.recording.lazy_polars import pl

# Blanks that do not break a line, thin and narrow ones: only between thousands.
SPACES = "\u00a0\u2009\u202f"
_GROUPS = rf"[_'’ {SPACES}]"
# A number with any marks, for `re` and for polars.
DIGITS = (
    r"(?:[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+"  # 1.204,5
    r"|[0-9]{1,3}(?:\.[0-9]{3}){2,}"  # 1.204.500
    rf"|[0-9]{{1,3}}(?:{_GROUPS}[0-9]{{3}})+(?:[.,][0-9]*)?"  # 1 204,5
    r"|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?"  # 1,204.5
    r"|[0-9][0-9_]*,?[0-9]*(?:\.[0-9]*)?)"
)
_ANY = re.compile(rf"(?<![A-Za-z0-9.,:/]){DIGITS}")
_SIGNS = re.compile(rf"[-+]|{_GROUPS}")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:(?:\.[0-9]{3})+|(?:,[0-9]{3})+)")
# 1.204: with decimals or without.
ONE_GROUP = r"^[-+]?[1-9][0-9]{0,2}\.[0-9]{3}$"
_IN_ADDRESS = 4
_LARGEST_IN_ADDRESS = 255


def decimal_marks(numbers: Iterable[str]) -> Counter[str]:
    """How many different numbers show that a comma, or a point, stands before decimals."""
    marks = (_decimal_mark(_SIGNS.sub("", number)) for number in set(numbers))
    return Counter(mark for mark in marks if mark)


def decimal_commas(numbers: Iterable[str], at_least: int = 1) -> bool | None:
    """True if commas stand before decimals, False if points do, or either; None if the numbers do
    not show it.

    at_least: so many different numbers must show a comma.
    """
    marks = decimal_marks(numbers)
    if marks["."]:
        return False
    return True if marks[","] >= at_least else None


def has_marks_of_thousands(numbers: Iterable[str]) -> bool:
    """Return True if some number has more than digits and one point."""
    return any(not number.replace(".", "", 1).isdecimal() for number in numbers)


def plain(numbers: pl.Series, *, commas: bool) -> pl.Series:
    """The numbers with digits and at most a point. commas: they stand before decimals."""
    between, before = (".", ",") if commas else (",", ".")
    bare = numbers.str.replace_all(_GROUPS, "").str.replace_all(between, "", literal=True)
    return bare.str.replace(before, ".", literal=True)


def with_points(text: str) -> str:
    """A text in which commas stand before decimals, with points there and no marks of thousands."""
    return _ANY.sub(
        lambda one: re.sub(_GROUPS, "", one[0]).replace(".", "").replace(",", "."), text
    )


def count_needs_groups(numbers: pl.Series) -> bool:
    """Return True for 750, 1.000, 1.250: a count that would fall if its points were decimal."""
    if not bool(numbers.str.contains(ONE_GROUP).any()):
        return False
    if not bool(numbers.str.contains(rf"{ONE_GROUP}|^[-+]?[0-9]{{1,3}}$").all()):
        return False
    ways = (plain(numbers, commas=commas).cast(pl.Float64) for commas in (True, False))
    as_groups, as_decimals = (bool((way.diff().drop_nulls() >= 0).all()) for way in ways)
    return as_groups and not as_decimals


def _decimal_mark(number: str) -> str:
    """The mark before decimals, "" if the number does not show it."""
    marks = {mark: number.count(mark) for mark in ".,"}
    if all(marks.values()):
        return max(marks, key=number.rfind)
    mark = next((mark for mark, often in marks.items() if often), "")
    if not mark:
        return ""
    other = "," if mark == "." else "."
    if _GROUPED.fullmatch(number):
        several = marks[mark] > 1 and not may_be_address(number)
        return other if several else ""
    if marks[mark] == 1:
        return mark
    return "" if mark == "." else other  # a version, or lakhs


def may_be_address(number: str) -> bool:
    """Return True for four numbers of a byte each, as in 10.120.130.140."""
    parts = number.split(".")
    return len(parts) == _IN_ADDRESS and all(int(part) <= _LARGEST_IN_ADDRESS for part in parts)

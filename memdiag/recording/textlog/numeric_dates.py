"""Dates in figures at the start of lines, in the form that is read as a time: `05/06/2025 08:00`
becomes `2025-06-05 08:00`; `05.06.2025: 1.2 GB` and `2025-06-05: 1.2 GB` get midnight as the time.
A date without a year, `17-03 22:00`, is of a leap year.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.timestamps import date_order
from memdiag.recording.textlog.day_lines import hour_of_day

_LOOKED_AT = 1 << 17
_AT_LEAST = 2
_CENTURY, _FIRST_YEAR, _MONTHS = 100, 2000, 12
_WITHOUT_YEAR = ("day_or_month", "month_or_day")
_DATE = re.compile(
    rb"(?m)^(?P<before>[^\n0-9]{0,24}?)(?<![\w.,/-])"
    rb"(?:(?P<iso>(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2})"
    rb"|(?P<figures>(?P<first>[0-9]{1,2})(?P<mark>[-/.])(?P<second>[0-9]{1,2})(?P=mark)"
    rb"(?P<third>(?:19|20)?[0-9]{2})"
    rb"|(?P<day_or_month>[0-9]{1,2})[-/.](?P<month_or_day>[0-9]{1,2})\.?"
    rb"(?=,?[ \t]{1,12}[0-9]{1,2}:[0-9]{2}(?![\w:]))))(?![\w.-])"
    rb"(?P<time>,?[ \t]{1,12}(?:(?:[^\s0-9]{1,6}[ ])?(?P<hour>[0-9]{1,2})[:h]"
    rb"|klo[ ](?P<hour_behind_klo>[0-9]{1,2})\.)(?P<minutes>[0-9]{2}(?::[0-9]{2})?)"
    rb"(?:[ ]?(?P<half>[AaPp])[Mm]\b)?(?![\w:]))?"
)
_TEXT_BEHIND = re.compile(rb"[^\n\w]{0,8}\w")


class NumericDates:
    """Writes such dates with the year first.

    block: the first of the log, which shows the order of day, month and a year of two digits.
    """

    def __init__(self, block: bytes) -> None:
        found = [one for one in _DATE.finditer(block[:_LOOKED_AT]) if _is_read(one)]
        self._is_used = len(found) >= _AT_LEAST
        dates = [one["figures"].decode() for one in found if one["third"]]
        self._order = date_order(pl.Series(dates)) if dates else ""
        self._order_without_year = _order_without_year(found)

    def with_times(self, block: bytes) -> bytes:
        """The next block with dates and times of day as ISO 8601 has them."""
        return _DATE.sub(self._written, block) if self._is_used else block

    def _written(self, found: re.Match[bytes]) -> bytes:
        date = self._iso(found) if _is_read(found) else None
        if date is None:
            return found[0]
        hour = hour_of_day(found["hour"] or found["hour_behind_klo"] or b"0", found["half"])
        time = b" %02d:" % hour + (found["minutes"] or b"00")
        return found["before"] + date.encode() + time

    def _iso(self, found: re.Match[bytes]) -> str | None:
        """The date with the year first, None if the calendar does not have it."""
        if found["iso"]:
            return found["iso"].decode()
        names = ("first", "second", "third") if found["third"] else _WITHOUT_YEAR
        order = self._order if found["third"] else self._order_without_year
        part = dict(zip(order, map(int, found.group(*names)), strict=False))
        if not part:
            return None
        year = part.get("y", 0) + _FIRST_YEAR * (part.get("y", 0) < _CENTURY)
        try:
            return datetime.date(year, part["m"], part["d"]).isoformat()
        except ValueError:
            return None


def _order_without_year(found: Sequence[re.Match[bytes]]) -> str:
    """`dm` or `md` of dates without a year: a number above 12 is a day, else the one with more
    different values is.
    """
    pairs = [tuple(map(int, one.group(*_WITHOUT_YEAR))) for one in found if one["day_or_month"]]
    if not pairs:
        return ""
    first, second = (set(figures) for figures in zip(*pairs, strict=True))
    are_days = (max(first) > _MONTHS, len(first)) > (max(second) > _MONTHS, len(second))
    return "dm" if are_days else "md"


def _is_read(found: re.Match[bytes]) -> bool:
    """Return True unless it is a time already, the day of the times in the lines below, or perhaps
    the position behind a word: `epoch 3/10 00:12`.
    """
    if found["day_or_month"] and re.search(rb"[^\W_]", found["before"]) is not None:
        return False
    if found["time"]:
        return not found["iso"]
    has_text = _TEXT_BEHIND.match(found.string, found.end()) is not None
    return has_text and (found["iso"] is not None or int(found["third"]) >= _CENTURY)

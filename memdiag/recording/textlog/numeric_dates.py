"""Dates in figures at the start of lines, in the form that is read as a time: `05/06/2025 08:00`
becomes `2025-06-05 08:00`; `05.06.2025: 1.2 GB` and `2025-06-05: 1.2 GB` get midnight as the time.
"""

from __future__ import annotations

import datetime
import re

from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.timestamps import is_day_first

_LOOKED_AT = 1 << 17
_AT_LEAST = 2
_CENTURY = "20"
_DATE = re.compile(
    rb"(?m)^(?P<before>[^\n0-9]{0,24}?)(?<![\w.,/-])"
    rb"(?:(?P<iso>(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2})"
    rb"|(?P<first>[0-9]{1,2})(?P<mark>[-/.])(?P<second>[0-9]{1,2})(?P=mark)"
    rb"(?P<year>(?:19|20)?[0-9]{2}))(?![\w.-])"
    rb"(?P<time>,?[ \t]{1,12}(?:(?:[^\s0-9]{1,6}[ ])?(?P<hour>[0-9]{1,2})[:h]"
    rb"|klo[ ](?P<hour_behind_klo>[0-9]{1,2})\.)(?P<minutes>[0-9]{2}(?::[0-9]{2})?)"
    rb"(?:[ ]?(?P<half>[AaPp])[Mm]\b)?(?![\w:]))?"
)
_TEXT_BEHIND = re.compile(rb"[^\n\w]{0,8}\w")


class NumericDates:
    """Writes such dates with the year first.

    block: the first of the log, which shows whether the day or the month comes first.
    """

    def __init__(self, block: bytes) -> None:
        dates = [_date(one) for one in _DATE.finditer(block[:_LOOKED_AT]) if _is_read(one)]
        self._is_used = len(dates) >= _AT_LEAST
        self._day_first = self._is_used and is_day_first(pl.Series(dates, dtype=pl.String))

    def with_times(self, block: bytes) -> bytes:
        """The next block with dates and times of day as ISO 8601 has them."""
        return _DATE.sub(self._written, block) if self._is_used else block

    def _written(self, found: re.Match[bytes]) -> bytes:
        date = self._iso(found) if _is_read(found) else None
        if date is None:
            return found[0]
        hour = int(found["hour"] or found["hour_behind_klo"] or 0)
        hour = hour % 12 + 12 * (found["half"] in b"Pp") if found["half"] else hour
        time = b" %02d:" % hour + (found["minutes"] or b"00")
        return found["before"] + date.encode() + time

    def _iso(self, found: re.Match[bytes]) -> str | None:
        """The date with the year first, None if there is no such day."""
        if found["iso"]:
            return found["iso"].decode()
        day, month = int(found["first"]), int(found["second"])
        if not self._day_first:
            day, month = month, day
        try:
            return datetime.date(int(_year(found)), month, day).isoformat()
        except ValueError:
            return None


def _is_read(found: re.Match[bytes]) -> bool:
    """Return True unless it is a time already, or the day of the times in the lines below."""
    if found["time"]:
        return not found["iso"]
    has_text = _TEXT_BEHIND.match(found.string, found.end()) is not None
    return has_text and (found["iso"] is not None or len(found["year"]) > len("25"))


def _date(found: re.Match[bytes]) -> str:
    """The date as it was written, for a guess of what it begins with."""
    if found["iso"]:
        return found["iso"].decode()
    first, second = found["first"].decode(), found["second"].decode()
    return f"{first}/{second}/{_year(found)}"


def _year(found: re.Match[bytes]) -> str:
    year = found["year"].decode()
    return year if len(year) > len("25") else f"{_CENTURY}{year}"

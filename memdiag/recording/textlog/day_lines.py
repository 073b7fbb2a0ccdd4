"""Lines that name the day of the times of day below them, as in the logs of chats: `--- Day changed
Tue Apr 02 2024`, and `09:01` below it, which becomes `2024-04-02 09:01`.
"""

from __future__ import annotations

import re

from memdiag.recording.parsing.timestamps import MONTHS

_MONTH = rb"(?:" + "|".join(MONTHS).encode() + rb")[a-z]{0,6}"
_YEAR = rb"(?:19|20)[0-9]{2}"
_CLOCK = rb"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
# Up to four words, `Log opened Mon`, and the date, perhaps with a time of day.
_DAY = (
    rb"(?i:^[^\w\n]{0,12}(?:[a-z]{2,12}[ ,:]{1,3}){0,4}"
    rb"(?:(?P<month>" + _MONTH + rb")[ .]{1,2}(?P<day>[0-9]{1,2}),?[ ](?:" + _CLOCK + rb"[ ])?"
    rb"(?P<year>" + _YEAR + rb")"
    rb"|(?P<day_first>[0-9]{1,2})\.?[ ](?P<month_behind>"
    + _MONTH
    + rb")[ ](?P<year_behind>"
    + _YEAR
    + rb")"
    rb"|(?P<whole>" + _YEAR + rb"-[0-9]{2}-[0-9]{2}))[^\w\n]{0,12}$)"
)
_TIME = (
    rb"^(?P<before>[ \t\[(<]{0,3})(?P<hour>[0-9]{1,2})(?P<rest>:[0-9]{2}(?::[0-9]{2})?)"
    rb"(?:[ ]?(?P<half>[AaPp])[Mm]\b)?(?=[\s\])>|,;]|\.[0-9]{3}|:\s|$)"
)
_EITHER = re.compile(rb"(?m)" + _DAY + rb"|" + _TIME)
_DAYS_AT_LEAST = 2
_LOOKED_AT = 1 << 17


class DayLines:
    """Writes the last day before each time of day at the start of a line.

    block: the first of the log. Nothing is written unless it has lines of several days.
    """

    def __init__(self, block: bytes) -> None:
        found = (_day(one) for one in _EITHER.finditer(block[:_LOOKED_AT]))
        self._is_used = len({day for day in found if day}) >= _DAYS_AT_LEAST
        self._last = b""

    def dated(self, block: bytes) -> bytes:
        """The next block with dates before its times."""
        return _EITHER.sub(self._with_day, block) if self._is_used else block

    def _with_day(self, found: re.Match[bytes]) -> bytes:
        if day := _day(found):
            self._last = day
            return found[0]
        if not self._last:
            return found[0]
        hour = hour_of_day(found["hour"], found["half"])
        return found["before"] + self._last + b" %02d" % hour + found["rest"]


def hour_of_day(hour: bytes, half: bytes | None) -> int:
    """The hour, 0 to 23, of one that `a` or `p` may stand behind."""
    return int(hour) % 12 + 12 * (half in b"Pp") if half else int(hour)


def _day(found: re.Match[bytes]) -> bytes:
    """The day that a line names, as in `2024-04-02`, "" if it is a time."""
    if found["whole"]:
        return found["whole"]
    month, day = found["month"] or found["month_behind"], found["day"] or found["day_first"]
    if not month:
        return b""
    number = 1 + MONTHS.index(month[:3].lower().decode())
    return (found["year"] or found["year_behind"]) + b"-%02d-%02d" % (number, int(day))

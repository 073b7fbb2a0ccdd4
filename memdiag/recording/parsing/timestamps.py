"""Converts dates and times of day to seconds, from a column of text or cut out of lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.fast_digits import whole_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.recording.parsing.fast_digits import Bytes
    from memdiag.values.measurements import Floats, Ints

_DATE_TIME = "%Y-%m-%d %H:%M:%S%.f"
_DAY_S = 86400.0
# Seconds below this are of a day, above since 1970: a week.
FIRST_DATE_S = 7 * _DAY_S
_CLOCK = re.compile(
    r"(?:([0-9]{4})[-/]([0-9]{2})[-/]([0-9]{2})[T ])?([0-9]{1,2})"
    r"(?:(?=\s?[AaPp])|[:h.]([0-9]{2}))(?::([0-9]{2}))?"
    r"(?:[.,]([0-9]{1,9}))?(?:\s?([AaPp])[Mm]| Uhr)?"
)
# What it reads beyond `moments`: hours and minutes alone, and twelve hours.
_NO_SECONDS = r"^((?:.*[T ])?[0-9]{1,2})[:h.]([0-9]{2})(?: Uhr)?$"
_HOUR_ALONE = r"^([0-9]{1,2})$"
_DATE_NO_SECONDS = r"^([0-9]{4}-[0-9]{1,2}-[0-9]{1,2} [0-9]{1,2}:[0-9]{2})$"
_HALF = r"\s?([AaPp])[Mm]$"
# `20240811`, of which the digits have no marks between them.
_DAY_IN_DIGITS = r"^((?:19|20)[0-9]{2})(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])"


_TIME = r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}(?:\.[0-9]+)?))?\s*([AaPp][Mm])?"
# `3/11/2025 9:30 PM`, `11.03.2025 21:30 +0100`, `03/11/25 21:30`.
_ZONE = r"(?:\s*(?:[-+][0-9]{2}:?[0-9]{2}|[A-Z]{1,4}))?"
# Perhaps as Go prints it: `+0000 UTC m=+0.013`.
_ZONE_BEHIND = r"(?:Z|\s*[-+]\d\d:?\d\d(?:\s+[A-Z]{3,4})?(?:\s+m=[-+][0-9.]+)?|\s+(?:UTC|GMT))$"
_DAY_AND_MONTH = r"^([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4}|[0-9]{2}\b)"
_CENTURY, _FIRST_YEAR = 100, 2000
_LAST_MONTH = 12
_NOON = 12
# A column of durations begins at most this many steps after zero. Heuristic.
_STEPS_BEFORE = 8
_HOUR_AND_MINUTE = "^[0-9]{2}:[0-9]{2}$"
# `Tue Mar 11 21:30:00 UTC 2025`, `11-Mar-2025 21:30`, `Mar 11, 2025 9:30 PM`.
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"({'|'.join(MONTHS)})[a-z]*"
_MONTH_AND_DAY = rf"(?:^|[^a-z]){_MONTH}[-., ]+([0-9]{{1,2}})(?:[^0-9:]|$)"
_DAY_AND_MONTH_NAME = rf"(?:^|[^0-9:])([0-9]{{1,2}})[-. ]+{_MONTH}"
# `01/Feb/24 06:00`, `01-Feb-2024`, `01/Feb/2024:06:00:00` of web servers.
_DAY_MONTH_YEAR = rf"^([0-9]{{1,2}})[-/]{_MONTH}[-/](?:20)?([0-9]{{2}})(?:[:T ]|$)"
_YEAR = r"(?:^|[^0-9:.])((?:19|20)[0-9]{2})(?:[^0-9:.]|$)"

# `2h`, `1h 10m`, `~5 min`, `T+30s`, `after 2 days`.
_SPAN = (
    r"^[^A-Za-z0-9]*(?:t|after|at|day)?[^A-Za-z0-9.-]*"
    + "".join(
        rf"(?:([0-9]+(?:\.[0-9]+)?)\s*{unit}[\s,:]*)?"
        for unit in (
            "d(?:ays?)?",
            "h(?:ours?|rs?)?",
            "m(?:in(?:utes?|s)?)?",
            "s(?:ec(?:onds?|s)?)?",
        )
    )
    + "[^A-Za-z0-9]*$"
)
_SPAN_S = (86400.0, 3600.0, 60.0, 1.0)


def spans_of(text: pl.Series) -> Floats:
    """Seconds of durations, each number with its unit; NaN if there is none."""
    parts = text.str.to_lowercase().str.extract_groups(_SPAN).struct.unnest().get_columns()
    seconds = np.zeros(len(text))
    found = np.zeros(len(text), dtype=bool)
    for part, unit_s in zip(parts, _SPAN_S, strict=True):
        values = _floats(part.cast(pl.Float64, strict=False))
        seconds += np.nan_to_num(values) * unit_s
        found |= np.isfinite(values)
    return np.where(found, seconds, np.nan)


def is_clock(text: pl.Series) -> bool:
    """Return True if some of these cells are dates or times of day."""
    return bool(text.str.contains(rf"[0-9]:[0-9]|^[0-9]{{4}}-[0-9]|{_DAY_AND_MONTH}").any())


def is_date_alone(text: pl.Series) -> bool:
    """Return True if all cells are dates without a time of day."""
    return bool(text.str.contains(rf"{_DAY_AND_MONTH}$|^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$").all())


def with_marked_days(text: pl.Series) -> pl.Series:
    """The cells with `2024-08-11` for `20240811`, if all of them are such days."""
    if text.null_count() == len(text) or not text.str.contains(rf"{_DAY_IN_DIGITS}$").all():
        return text
    return text.str.replace(_DAY_IN_DIGITS, "${1}-${2}-${3}")


def is_time_alone(text: pl.Series) -> bool:
    """Return True if all cells are times of day."""
    return bool(text.str.contains(rf"^{_TIME}$").all())


def date_order(text: pl.Series) -> str:
    """The order of day, month and year in dates such as `05/06/2025`, as far as they show it:
    "dmy", "mdy" or, only for years of two digits, "ymd"; "" for a text without such dates.
    """
    ways = _by_order(text)
    return min(ways, key=lambda order: _disorder(ways[order]), default="")


def seconds_of(text: pl.Series) -> Floats:
    """Seconds of dates or times of day since the first of them; NaN if there is none."""
    return since_first(moments(text))


def moments(text: pl.Series) -> Floats:
    """Seconds since 1970 of dates, since midnight of times of day; NaN for anything else."""
    runs = text.rle().struct
    lengths = runs.field("len")
    if len(lengths) * 2 <= len(text):  # a log writes many lines a second
        return np.repeat(moments(runs.field("value")), lengths.to_numpy())
    if text.n_unique() * 2 > len(text) or text.str.contains(_HOUR_AND_MINUTE).all():
        return _moments(text)
    different = text.unique()  # interleaved times of several processes
    seconds = pl.Series(_moments(different), nan_to_null=False)
    return _floats(text.replace_strict(different, seconds, return_dtype=pl.Float64))


def moments_of_stamps(stamps: pl.Series) -> Floats:
    """`moments` of times cut out of lines, which may have no seconds, or be of twelve hours."""
    half = stamps.str.extract(_HALF, 1).str.to_lowercase()
    clocks = stamps.str.replace(_HALF, "").str.replace(_HOUR_ALONE, "${1}:00:00")
    seconds = moments(clocks.str.replace(_NO_SECONDS, "${1}:${2}:00"))
    is_half = half.is_not_null().to_numpy()
    noon = np.where((half == "p").fill_null(value=False).to_numpy(), _DAY_S / 2, 0.0)
    return np.where(is_half, seconds % (_DAY_S / 2) + noon, seconds)


def since_first(moments: Floats) -> Floats:
    """`moments` since the first. Among dates, times of day are unknown; alone, they continue after
    midnight.
    """
    if not np.isfinite(moments).any():
        return moments
    is_date = moments >= FIRST_DATE_S
    if is_date.any():
        dated = np.where(is_date, moments, np.nan)
        since_first: Floats = dated - float(np.nanmin(dated))
        return since_first
    days = np.cumsum(np.diff(np.nan_to_num(moments), prepend=moments[:1]) < -_DAY_S / 2)
    running = moments + days * _DAY_S
    return running - float(np.nanmin(running))


def _moments(text: pl.Series) -> Floats:
    plain = text.str.replace(_ZONE_BEHIND, "")
    plain = plain.str.replace_all("/", "-", literal=True).str.replace("T", " ", literal=True)
    plain = plain.str.replace(",", ".", literal=True)
    plain = plain.str.replace(r"^[0-9]{1,2}[-.][0-9]{1,2} +", "")  # no year: only the time of day
    plain = plain.str.replace(_DATE_NO_SECONDS, "${1}:00")
    dates = plain.str.to_datetime(_DATE_TIME, strict=False, time_unit="us")
    seconds = _floats(dates.dt.epoch("us")) * 1e-6
    if not dates.has_nulls():
        return seconds
    seconds = np.where(np.isnan(seconds), _with_day_and_month(text), seconds)
    seconds = np.where(np.isnan(seconds), _with_month_name(text), seconds)
    return np.where(np.isnan(seconds), _times_of_day(plain), seconds)


def _with_month_name(text: pl.Series) -> Floats:
    """Seconds since 1970 of dates that name the month, at midnight without a time of day."""
    lower = text.str.to_lowercase().str.replace(_DAY_MONTH_YEAR, "${1} ${2} 20${3} ")
    before = lower.str.extract_groups(_MONTH_AND_DAY).struct.unnest()
    behind = lower.str.extract_groups(_DAY_AND_MONTH_NAME).struct.unnest()
    name = before.to_series(0).fill_null(behind.to_series(1))
    numbers = {month: at for at, month in enumerate(MONTHS, 1)}
    month = name.replace_strict(numbers, default=None, return_dtype=pl.Float64)
    if month.null_count() == len(month):
        return _floats(month)
    day = before.to_series(1).fill_null(behind.to_series(0)).cast(pl.Float64, strict=False)
    year = lower.str.extract(_YEAR, 1).cast(pl.Float64, strict=False)
    clock = _clock_of(lower.str.extract_groups(rf"(?:^|[^0-9:]){_TIME}").struct.unnest())
    return _days(_floats(year), _floats(month), _floats(day)) * _DAY_S + clock


def _clock_of(groups: pl.DataFrame) -> Floats:
    """Seconds since midnight from the groups of `_TIME`; 0 without a time of day."""
    *parts, half = groups.get_columns()
    numbers = [np.nan_to_num(_floats(part.cast(pl.Float64, strict=False))) for part in parts]
    clock = sum(part * unit_s for part, unit_s in zip(numbers, _SPAN_S[1:], strict=True))
    letters = half.str.to_lowercase().fill_null("")
    clock = clock + np.where((letters == "pm").to_numpy() & (numbers[0] < _NOON), _DAY_S / 2, 0.0)
    return clock - np.where((letters == "am").to_numpy() & (numbers[0] == _NOON), _DAY_S / 2, 0.0)


def _with_day_and_month(text: pl.Series) -> Floats:
    """Seconds since 1970 of dates that begin with the day or the month."""
    return min(_by_order(text).values(), key=_disorder, default=np.full(len(text), np.nan))


def _by_order(text: pl.Series) -> dict[str, Floats]:
    """The same in each order that they may have, the preferred one first."""
    pattern = rf"{_DAY_AND_MONTH}(?:[ ,T]+{_TIME}{_ZONE})?$"
    groups = text.str.extract_groups(pattern).struct.unnest()
    parts = groups.get_columns()[:3]
    first, second, year = (_floats(part.cast(pl.Float64, strict=False)) for part in parts)
    clock = _clock_of(groups.select(groups.columns[3:]))
    if not np.isfinite(year).any():
        return {}
    is_short = bool((year < _CENTURY).any())
    ways = {"dmy": (first, second, year), "mdy": (second, first, year)}  # day, month, year
    ways |= {"ymd": (year, second, first)} if is_short else {}
    separator = "." in (text.drop_nulls().filter(np.isfinite(year)).first() or "")[:3]
    return {
        order: _days(_whole(year), month, day) * _DAY_S + clock
        for order, (day, month, year) in list(ways.items())[:: 1 if separator else -1]
    }


def _whole(year: Floats) -> Floats:
    """Years with those of two digits in this century."""
    return np.where(year < _CENTURY, year + _FIRST_YEAR, year)


def _disorder(seconds: Floats) -> tuple[int, int, float]:
    """How badly dates fit a log: those that do not exist, steps back, and the time they span."""
    known = seconds[np.isfinite(seconds)]
    span = float(known.max() - known.min()) if known.size else 0.0
    return -known.size, int((np.diff(known) < 0).sum()), span


def _days(year: Floats | Ints, month: Floats | Ints, day: Floats | Ints) -> Floats:
    """Days since 1970, NaN where there is no such date."""
    exists = np.isfinite(year) & (month >= 1) & (month <= _LAST_MONTH) & (day >= 1)
    years, months, days = (np.where(exists, part, 1).astype(int) for part in (year, month, day))
    first = (years - 1970).astype("M8[Y]").astype("M8[M]") + (months - 1).astype("m8[M]")
    date = first.astype("M8[D]") + (days - 1).astype("m8[D]")
    exists &= date.astype("M8[M]") == first
    return np.where(exists, date.astype(np.int64), np.nan)


def _times_of_day(text: pl.Series) -> Floats:
    """Seconds of `14:03:22.5` or `03:22`: minutes and seconds, unless they have two digits each and
    begin later than they last (`09:12` to `09:47`) or than several steps (`08:00`, `08:20`...), or
    fall only by more than half a day (`12:00`, `18:00`, `00:00`...), as times of day do.
    """
    seconds = np.zeros(len(text))
    for part in range(3):
        cell = text.str.split(":").list.get(part, null_on_oob=True).cast(pl.Float64, strict=False)
        values = _floats(cell)
        seconds = np.where(np.isnan(values) & (part == 2), seconds, seconds * 60.0 + values)
    is_known = np.isfinite(seconds)
    known = seconds[is_known]
    is_of_day = known.size > 1 and known.max() < _DAY_S / 60.0
    is_of_day = is_of_day and (_begin_late(known) or _fall_at_midnight(known))
    has_hours = is_of_day and bool(text.filter(is_known).str.contains(_HOUR_AND_MINUTE).all())
    return seconds * 60.0 if has_hours else seconds


def _begin_late(times: Floats) -> bool:
    usual = float(np.median(np.abs(np.diff(times))))
    return bool(2 * times.min() > times.max() or times[0] > _STEPS_BEFORE * usual > 0)


def _fall_at_midnight(times: Floats) -> bool:
    moves = np.diff(times)
    falls = moves[moves < 0]
    return bool(falls.size and np.all(falls < -_DAY_S / 120.0))


def _floats(column: pl.Series) -> Floats:
    return column.to_numpy().astype(np.float64, copy=False)


def moments_of_marks(marks: Bytes, text: str) -> Floats:
    """`moments_of_stamps` of equally long texts that differ from `text` only in their digits.

    marks: their bytes, shape (n, length). NaN if the text has another form.
    """
    found = _CLOCK.fullmatch(text)
    if found is None:
        return np.full(len(marks), np.nan)
    changes = np.flatnonzero(_changed(marks)) + 1
    seconds = _clock_seconds(marks[np.concatenate(([0], changes))], found)
    return np.repeat(seconds, np.diff(np.concatenate(([0], changes, [len(marks)]))))


def _changed(marks: Bytes) -> NDArray[np.bool_]:
    """For each row except the first whether it differs from the one before, in 8-byte words."""
    padded = np.zeros((len(marks), -(-marks.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : marks.shape[1]] = marks
    changed = np.zeros(len(marks) - 1, dtype=bool)
    for words in padded.view(np.uint64).T:
        changed |= words[1:] != words[:-1]
    return changed


def _clock_seconds(marks: Bytes, found: re.Match[str]) -> Floats:
    numbers = [
        whole_number(marks[:, slice(*found.span(group))]) if found.group(group) else None
        for group in range(1, 8)
    ]
    year, month, day, hour, minute, second, fraction = numbers
    if hour is None:
        return np.full(len(marks), np.nan)
    if minute is None:  # `9pm`
        minute = np.zeros_like(hour)
    if second is None:
        second = np.zeros_like(minute)
    if half := found.group(8):
        hour = hour % 12 + (12 if half in "Pp" else 0)
    seconds: Floats = hour * 3600.0 + minute * 60.0 + second
    if fraction is not None:
        seconds = seconds + fraction / 10.0 ** len(found.group(7))
    if year is None or month is None or day is None:
        return seconds
    valid = (hour < 24) & (minute < 60) & (second < 60)
    return np.where(valid, _days(year, month, day) * _DAY_S + seconds, np.nan)

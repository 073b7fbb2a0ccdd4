"""What monitors print in a loop: blocks of rows, each below its header."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from itertools import chain, pairwise

from memdiag.recording.inputs.paste_cleanup import without_escapes
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.timestamps import MONTHS
from memdiag.recording.tables.table import Table

# Counts the samples of a monitor that prints no time.
TICK = "tick"

Header = list[str]
Row = dict[str, str]
Line = tuple[bool, str]  # whether it is a header
_MAX_BYTES = 512 << 20
_TIME = re.compile(r"(?:\b|(?<=[0-9]T))([0-9]{1,2})(:[0-9]{2}:[0-9]{2})(?:\s+([AP])M)?(?:Z|\b)")
_CLOCK = re.compile("([0-9]{1,2}):([0-9]{2})")
_HALF_DAY_MIN = 720
_MONTH_AND_DAY = re.compile(
    rf"\b({'|'.join(map(str.title, MONTHS))})[a-z]{{0,6}} {{1,2}}([0-9]{{1,2}})(?![0-9:])"
)
_YEAR = re.compile(r"(?<![0-9:.])20[0-9]{2}(?![0-9:])")
_DAY = re.compile(r"(?<![0-9.])([0-9]{1,2})\.([0-9]{1,2})\.(20[0-9]{2})(?![0-9.])")
_YEAR_FIRST = re.compile(r"(?<![0-9])(20[0-9]{2})[-/]([0-9]{1,2})[-/]([0-9]{1,2})(?![0-9])")
_LONGEST_MOMENT = 400
# This share of the moves of a clock may be back, as in `tables.axis`.
_BACKWARDS = 0.05
# Hours and minutes alone on a line, or behind a date.
_HOUR_AND_MINUTE = r"([01]?[0-9]|2[0-3])(:[0-5][0-9])(?:\s*([AP])M)?"
_MINUTES = re.compile(rf"\W*{_HOUR_AND_MINUTE}\W*")
_ANY_DATE = r"(?<![0-9])[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}"
_DATE_AND_MINUTES = re.compile(rf"{_ANY_DATE}(?:T| {{1,3}}){_HOUR_AND_MINUTE}(?![0-9:])")

# In front of a row: `2024-10-02 08:59:47`, `Wed Oct  2 08:59:47 CEST 2024`, 1727852387.
_DATE_IN_FRONT = (
    r"(?:20[0-9]{2}[-/][0-9]{2}[-/][0-9]{2}(?:[ \t]+|[T_,])|(?:[A-Z][a-z]{2} +){1,2}[0-9]{1,2} +)"
)
_TIME_IN_FRONT = re.compile(
    rf"\s*\[?({_DATE_IN_FRONT}?[0-9]{{1,2}}:[0-9]{{2}}:[0-9]{{2}}(?:[.,][0-9]+)?(?: [AP]M)?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2}|(?: [A-Z]{3,5})? 20[0-9]{2})?|1[0-9]{9}(?:\.[0-9]+)?)"
    r"\]?[,;]?\s+(?=\S)"
)


def table_of_blocks(
    lines: Iterable[Line], rows_of: Callable[[Header, Sequence[str]], list[Row]]
) -> Table | None:
    """One table of all blocks, with the date and time before each of them, or the time of day if
    some have no date, else its number; None without rows.
    """
    rows: list[Row] = []
    header: Header = []
    block: list[str] = []
    sample, clock, header_clock = 0, "", ""
    for is_header, line in chain(lines, [(True, "")]):
        if not is_header:
            if line.strip():
                block.append(line)
                clock = _clock(line, header) or clock
            continue
        moment = {TICK: str(sample), **({"time": header_clock} if header_clock else {})}
        rows += [{**moment, **row} for row in rows_of(header, block)]
        sample += 1 if header else 0
        header, block, header_clock = header_of(line), [], clock
    if not rows:
        return None
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    if "time" not in names:
        return Table.of(pl.DataFrame(columns))
    columns["time"] = _of_one_kind(columns["time"])
    times = [time for time in columns["time"] if time]
    # Times may be of other lines between the tables, or of what is around them all.
    is_of_others = goes_back(times) or len(set(times)) < min(sample, 2)
    return Table.of(pl.DataFrame(columns).drop("time" if is_of_others else TICK))


def _of_one_kind(times: Sequence[str | None]) -> list[str | None]:
    """The times, without their dates if some have none."""
    are_dated = all(" " in time for time in times if time)
    return [time if are_dated or not time else time.split(" ")[-1] for time in times]


def goes_back(times: Sequence[str]) -> bool:
    """Return True if more than a few of the moves of these dates, or times of day, are back, and
    not over midnight.
    """
    if all(_YEAR_FIRST.match(time) for time in times):
        onwards = [a < b for a, b in pairwise(times) if a != b]
        return onwards.count(False) > _BACKWARDS * len(onwards)
    found = (_CLOCK.match(time) for time in times)
    minutes = [60 * int(one[1]) + int(one[2]) for one in found if one is not None]
    moves = [b - a for a, b in pairwise(minutes) if a != b]
    back = sum(-_HALF_DAY_MIN < move < 0 for move in moves)
    return back > _BACKWARDS * len(moves)


def clock_in(line: str) -> str:
    """The time of day in a line on a 24-hour clock, "" if there is none."""
    with_seconds = _TIME.search(line)
    found = with_seconds or _MINUTES.fullmatch(line) or _DATE_AND_MINUTES.search(line)
    if found is None:
        return ""
    hour = int(found[1])
    if found[3]:
        hour = hour % 12 + (12 if found[3] == "P" else 0)
    return f"{hour:02d}{found[2]}" if with_seconds else f"{hour:02d}{found[2]}:00"


def moment_in(line: str) -> str:
    """The date and time of day in a line, as `2024-10-02 08:59`, `Wed Oct 2 08:59:47 CEST 2024`,
    `08:59:47.390 CEST Wed Oct 2 2024` and `02.10.2024 08:59:47`; only the time of day without a
    date, "" without either.
    """
    clock, line = clock_in(line), line[:_LONGEST_MOMENT]
    if not clock:
        return ""
    if (date := _YEAR_FIRST.search(line)) is not None:
        return f"{date[1]}-{int(date[2]):02d}-{int(date[3]):02d} {clock}"
    if (day := _DAY.search(line)) is not None:
        return f"{day[3]}-{int(day[2]):02d}-{int(day[1]):02d} {clock}"
    month, year = _MONTH_AND_DAY.search(line), _YEAR.search(line)
    if month is None or year is None:
        return clock
    return f"{year[0]}-{1 + MONTHS.index(month[1].lower()):02d}-{int(month[2]):02d} {clock}"


def time_in_front(line: str) -> tuple[str, str]:
    """The date and time that a line begins with, and what is behind them; "" and the line if it
    begins with something else.
    """
    found = _TIME_IN_FRONT.match(line)
    if found is None:
        return "", line
    time = found[1]
    if ":" not in time:
        time = f"{datetime.fromtimestamp(float(time), timezone.utc):%Y-%m-%d %H:%M:%S}"
    return moment_in(time), line[found.end() :]


def _clock(line: str, header: Header) -> str:
    """The time that `date` or top printed; "" in a process's row, which has CPU time."""
    names, words = [name.lower() for name in header], line.split()
    at = names.index("pid") if "pid" in names else len(words)
    is_row = len(words) >= len(names) and at < len(words) and words[at].isdigit()
    return "" if is_row else moment_in(line)


def header_of(line: str) -> Header:
    """Names of the columns; pidstat has the time in the place of its name, and htop an arrow behind
    the column by which it sorts.
    """
    words = re.sub("[▽△]", " ", line).lstrip("# ").split()
    return ["time" if _TIME.fullmatch(word) else word for word in words]


def all_lines(source: Source) -> list[str]:
    """The lines of a source's first 512 MiB."""
    raw = without_escapes(source.first_bytes(_MAX_BYTES))
    text = raw.decode("utf-8", errors="replace")
    return text.replace("\r", "").split("\n")

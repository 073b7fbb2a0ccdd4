"""Times of day in the lines of a text log: cut out of each line, and read as seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from logs import read_log

from memdiag.errors import ReadError
from memdiag.recording.inputs.lines import split_stamp, stamped
from memdiag.recording.parsing.timestamps import moments_of_marks, moments_of_stamps
from memdiag.values.measurements import AxisKind

LINES = {
    "2026-03-11 09:05:10,250 rss 5 MB": "2026-03-11 09:05:10,250",
    "2026-03-11 09:05 rss 5 MB": "2026-03-11 09:05",
    "INFO [09:05:10] rss 5 MB": "09:05:10",
    "[09:05:10 PM] rss 5 MB": "09:05:10 PM",
    "09:05 rss 5 MB": "09:05",
    "[9:05] rss 5 MB": "9:05",
    "  9:05 AM - rss 5 MB": "9:05 AM",
    "09:05: rss 5 MB": "09:05",
    "09:05": "09:05",
    "09h05 rss 5 Mo": "09h05",
    "09.05 Uhr: 5 MB": "09.05 Uhr",
    "9pm: rss 5 MB": "9pm",
    "- 12 AM 5 MB": "12 AM",
    "13pm 5 MB": None,
    "9 AMD cards 5 MB": None,
    "step 09:05 rss 5 MB": None,
    "09:512 MB": None,
    "9.05 MB": None,
    "00:05<00:10, 3.1it/s": None,
}


@pytest.mark.parametrize(("line", "stamp"), LINES.items())
def test_a_time_is_cut_out_of_one_line_as_out_of_many(line: str, stamp: str | None) -> None:
    many = stamped(line.encode() + b"\n").row(0, named=True)
    one = split_stamp(line)
    assert many["stamp"] == stamp
    assert (None if one.stamp is None else line[slice(*one.stamp)]) == stamp
    assert one.line.strip() == many["line"].strip()


@pytest.mark.parametrize("stamp", [stamp for stamp in LINES.values() if stamp])
def test_a_time_is_the_same_moment_alone_and_among_others_of_its_form(stamp: str) -> None:
    marks = np.frombuffer(stamp.encode(), dtype=np.uint8).reshape(1, -1)
    assert moments_of_stamps(pl.Series([stamp]))[0] == moments_of_marks(marks, stamp)[0]


def test_twelve_hours_have_two_halves() -> None:
    seconds = moments_of_stamps(pl.Series(["12:30 AM", "1:00 AM", "12:30 PM", "1:00 PM"]))
    assert seconds.tolist() == [1800, 3600, 45000, 46800]


def test_an_hour_alone_has_two_halves(tmp_path: Path) -> None:
    hours = ["10am", "11am", "12pm", "1pm", "2pm", "3pm"]
    log = "today the memory used was:\n\n" + "".join(
        f"{hour} {20 + n}.5 GB\n" for n, hour in enumerate(hours)
    )
    (series,) = read_log(tmp_path, log).series
    assert series.axis.kind is AxisKind.SECONDS
    assert series.x.tolist() == [3600 * n for n in range(6)]
    assert series.y[1] == 21.5e9


FORMS: dict[str, Callable[[str, int], str]] = {
    "plain": lambda clock, m: f"{clock} rss {m} MB\n",
    "in brackets": lambda clock, m: f"[{clock}] rss: {m}MB\n",
    "a dash": lambda clock, m: f"{clock} - rss {m} MB\n",
    "on a line of its own": lambda clock, m: f"{clock}\nRSS: {m} MB\n\n",
    "French": lambda clock, m: f"{clock.replace(':', 'h')} : mémoire {m} Mo\n",
    "German": lambda clock, m: f"{clock.replace(':', '.')} Uhr: Speicher {m} MB\n",
    "in words": lambda clock, m: f"{clock} and {m % 60} seconds\nrss {m} MB\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_hours_and_minutes_at_the_front_are_a_clock(tmp_path: Path, form: str) -> None:
    minutes = [1435 + 3 * n for n in range(40)]  # beyond midnight
    clocks = [f"{at // 60 % 24:02d}:{at % 60:02d}" for at in minutes]
    log = "".join(FORMS[form](clock, 812 + 7 * n) for n, clock in enumerate(clocks))
    (series,) = read_log(tmp_path, log).series
    assert series.axis.kind is AxisKind.SECONDS
    assert series.x.tolist() == [180 * n for n in range(40)]


def test_the_hour_of_a_longer_time_is_no_index(tmp_path: Path) -> None:
    log = "".join(f"{40 + n // 60}:{n % 60:02d} rss {812 + n} MB\n" for n in range(100))
    (series,) = read_log(tmp_path, log).series
    assert series.axis.name != "index"


def test_a_pattern_may_name_the_time_of_a_line(tmp_path: Path) -> None:
    lines = "".join(f"09:{n:02d} uses {800 + n}\n" for n in range(30))
    pattern = r"^(?P<time>\d+:\d+) uses (?P<rss_mb>\d+)"
    (series,) = read_log(tmp_path, lines, pattern=pattern).series
    assert series.axis.kind is AxisKind.SECONDS


DAY_LINES = [
    "--- Day changed Thu Feb {day:02} 2024",
    "--- Log opened Thu Feb {day:02} 00:00:01 2024",
    "***** {day} February 2024 *****",
    "Thursday, February {day}, 2024",
    "== 2024-02-{day:02} ==",
]
MINUTES = [31, 24, 27, 21, 39, 30]


@pytest.mark.parametrize("day_line", DAY_LINES)
@pytest.mark.parametrize("clock", ["20:{:02} ", "[8:{:02} PM] ", "20:{:02}:00.000 "])
def test_a_line_with_a_day_is_of_the_times_below_it(
    tmp_path: Path, day_line: str, clock: str
) -> None:
    days = [
        f"{day_line.format(day=3 + n)}\n{clock.format(m)}<kim> the bot uses {500 + 40 * n} MB\n"
        f"{clock.format(55)}<lea> fine, see you in 2024\n"
        for n, m in enumerate(MINUTES)
    ]
    (series,) = read_log(tmp_path, "".join(days)).series
    days_s = [86400 * n + 60 * (m - MINUTES[0]) for n, m in enumerate(MINUTES)]
    assert series.x.tolist() == days_s
    assert series.y.tolist() == [(500 + 40 * n) * 1e6 for n in range(6)]


def test_a_sentence_with_a_day_is_of_no_times(tmp_path: Path) -> None:
    lines = [f"08:{n:02} rss {500 + n} MB\n" for n in range(12)]
    lines.insert(6, "fixed in the release of 4 February 2024, see there\n")
    lines.insert(9, "broken since 5 February 2024, see there\n")
    (series,) = read_log(tmp_path, "".join(lines)).series
    assert series.x.tolist() == [60 * n for n in range(12)]


def test_times_that_go_back_and_forth_are_not_sorted(tmp_path: Path) -> None:
    lines = [f"08:{m} <kim> memory used is {500 + 40 * n} MB\n" for n, m in enumerate(MINUTES)]
    (series,) = read_log(tmp_path, "".join(lines)).series
    assert series.axis.kind is AxisKind.INDEX
    assert series.y.tolist() == [(500 + 40 * n) * 1e6 for n in range(6)]


def test_times_that_go_back_by_little_are_times(tmp_path: Path) -> None:
    seconds = [10 * n - 3 * (n % 2) + (n % 3) for n in range(60)]
    seconds = [at - 9 * (n % 2) for n, at in enumerate(seconds)]
    lines = [
        f"08:{10 + at // 60:02}:{at % 60:02} memory used is {500 + n} MB\n"
        for n, at in enumerate(seconds)
    ]
    (series,) = read_log(tmp_path, "".join(lines)).series
    assert series.axis.kind is AxisKind.SECONDS


CHATS = [
    "- the crawler is at {} MB",
    "– Ann : l'agent du site est à {} Mo",
    "– der Bot ist bei {} MB",
]


@pytest.mark.parametrize("words", CHATS)
@pytest.mark.parametrize("mark", ["h", ":"])
def test_what_is_at_a_size_is_a_process_if_its_load_is_told_now_and_then(
    tmp_path: Path, words: str, mark: str
) -> None:
    load = ", CPU 9 %"
    lines = [
        f"{8 + n:02}{mark}15 {words.format(700 + 31 * n)}{load * (n % 4 == 0)}\n" for n in range(12)
    ]
    (series,) = read_log(tmp_path, "".join(lines)).series
    assert series.x.tolist() == [3600 * n for n in range(12)]
    assert series.y.tolist() == [(700 + 31 * n) * 1e6 for n in range(12)]
    with pytest.raises(ReadError):
        read_log(tmp_path, "".join(line.replace(load, "") for line in lines))


@pytest.mark.parametrize("words", ["wrote {} MB", "la copie fait {} Mo", "archive {} MB"])
def test_a_size_of_a_thing_is_none_of_a_process(tmp_path: Path, words: str) -> None:
    load = ", CPU 9 %"
    lines = [
        f"{8 + n:02}h15 - {words.format(700 + 31 * n)}{load * (n % 4 == 0)}\n" for n in range(12)
    ]
    with pytest.raises(ReadError):
        read_log(tmp_path, "".join(lines))


@pytest.mark.parametrize("of", ["used of", "utilisés sur", "belegt von", "of", "de"])
def test_times_with_blanks_and_totals_behind_words(tmp_path: Path, of: str) -> None:
    lines = [f"- à 8 h {10 + n} : {n + 1}.25 GB {of} 16 GB" for n in range(12)]
    (series,) = read_log(tmp_path, lines).series
    assert series.x.tolist() == [60.0 * n for n in range(12)]
    assert series.y.tolist() == [(n + 1.25) * 1e9 for n in range(12)]


def test_hours_and_sizes_are_no_times_of_day(tmp_path: Path) -> None:
    (series,) = read_log(tmp_path, [f"- {n} h {10 + n} GB" for n in range(12)]).series
    assert series.y.tolist() == [(n + 10) * 1e9 for n in range(12)]


@pytest.mark.parametrize("form", ["%d/%b/%y %H:%M", "%d-%b-%Y %H:%M:%S", "%d/%b/%Y:%H:%M:%S"])
def test_days_with_names_of_months_in_tables(tmp_path: Path, form: str) -> None:
    begin = datetime(2020, 12, 31, 20, tzinfo=timezone.utc)
    times = [begin + timedelta(hours=n) for n in range(12)]
    lines = ["time,rss_mb", *(f"{time.strftime(form)},{9 + n}" for n, time in enumerate(times))]
    (series,) = read_log(tmp_path, lines).series
    assert series.x.tolist() == [3600.0 * n for n in range(12)]

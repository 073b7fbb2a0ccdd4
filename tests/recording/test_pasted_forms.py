"""Rules that make further pasted logs readable, each with what must stay as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log

from memdiag.recording.inputs.lines import split_stamp
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.timestamps import moments, since_first
from memdiag.recording.tables.host_parts import unit_of_machine
from memdiag.recording.textlog.number_style import number_style
from memdiag.values.measurements import Role

N = 12


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("container_memory_cache", Role.CACHE),
        ("memory.cache.current", Role.CACHE),
        ("mem.cache.rrset", Role.RESIDENT),
    ],
)
def test_only_the_page_cache_is_called_memory_cache(name: str, role: Role) -> None:
    assert recognise(name).role is role


@pytest.mark.parametrize(
    "name",
    ["minnesanvändning", "Speicherauslastung", "geheugengebruik", "muistinkäyttö", "пам'ять"],
)
def test_words_that_are_composed_of_memory_are_memory(name: str) -> None:
    assert recognise(name).part is Part.METRIC


@pytest.mark.parametrize("name", ["speichern", "gespeichert", "allocated so far", "datanutzung"])
def test_words_that_only_begin_or_end_so_are_none(name: str) -> None:
    assert recognise(name).part is not Part.METRIC


def test_the_most_that_was_allocated_so_far_is_memory() -> None:
    assert recognise("max memory allocated so far").part is Part.METRIC


def test_a_duration_is_the_sum_of_its_parts_only_if_its_units_become_smaller() -> None:
    lines = b"up 1h 05m 12s\nup 2 days, 3 hours\nup 3 mins 14.5 secs\nup 1h 10m\nran 3s 5m\n"
    assert number_style(lines).plain(lines).decode().split("\n")[:-1] == [
        *("up 3912 s", "up 183600 s", "up 194.5 s", "up 4200 s", "ran 3s 5m")
    ]


def test_a_time_behind_a_name_is_that_of_the_lines_below() -> None:
    assert split_stamp("Ann Lee  9:05 PM").stamp == (9, 16)
    assert split_stamp("it took 9:05 PM long").stamp is None


def test_dates_need_no_seconds() -> None:
    found = moments(pl.Series(["2024-02-03 04:10", "2024/02/03 04:30"]))
    assert np.diff(found).tolist() == [1200]


def test_times_that_fall_at_midnight_are_of_day() -> None:
    times = since_first(moments(pl.Series(["00:00", "08:00", "16:00"] * 3)))
    assert np.diff(times).tolist() == [8 * 3600.0] * 8


def test_minutes_and_seconds_that_fall_otherwise_stay() -> None:
    times = moments(pl.Series(["00:10", "07:10", "00:50", "06:00"]))
    assert times.max() == 430


@pytest.mark.parametrize(("size", "unit"), [(16_000_000, "KiB"), (16_000, "MiB"), (1.6e10, "B")])
def test_the_size_of_a_machine_shows_the_unit(size: float, unit: str) -> None:
    assert unit_of_machine(size) == unit


def test_what_has_a_number_is_one_of_several_only_if_it_comes_again(tmp_path: Path) -> None:
    lines = (f"step {n} api-0: {1 + n} GiB, api-1: {50 - n} GiB" for n in range(N))
    assert [one.y[0] for one in read_log(tmp_path, list(lines)).series] == [1 << 30, 50 << 30]


def test_two_levels_with_two_wordings_stay_two_series(tmp_path: Path) -> None:
    lines = (f"job {n}: {w} mem {m + n} MB" for n in range(N) for w, m in (("up", 90), ("down", 2)))
    assert len(read_log(tmp_path, list(lines)).series) == 2


def test_wordings_of_one_rising_amount_are_one_series(tmp_path: Path) -> None:
    words = ("busy", "idle")
    lines = [f"job {n}: {words[n % 2]} today, mem {100 + 9 * n} MB" for n in range(2 * N)]
    (series,) = read_log(tmp_path, lines).series
    assert len(series.y) == 2 * N

"""Dates above what a command prints in a loop, and in columns of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.values.measurements import AxisKind

N = 12
MIB = 1 << 20


def _free(used: int) -> str:
    return (
        f"               total        used        free      shared  buff/cache   available\n"
        f"Mem:           31982       {used:5}       15702         412        9000       24002\n"
        f"Swap:           8191           0        8191"
    )


@pytest.mark.parametrize(
    "heading",
    [
        "== 2023-12-0{day} {hour:02}:00 ==",
        "--- gw3 2023/12/0{day} {hour:02}:00 ---",
        "04.12.2023 08:30: {hour} h",
    ],
)
def test_dates_without_seconds_above_free(tmp_path: Path, heading: str) -> None:
    hours = range(18, 18 + N)
    lines = [
        f"{heading.format(day=4 + hour // 24, hour=hour % 24)}\n{_free(7000 + hour)}"
        for hour in hours
    ]
    series = series_of(read_log(tmp_path, lines), "host_used_bytes")
    assert series.y.tolist() == [(7000 + hour) * MIB for hour in hours]
    if "{day}" in heading:
        assert np.diff(series.x).tolist() == [3600] * (N - 1)
    else:  # the same on all
        assert series.axis.kind is AxisKind.TICK


def test_days_above_free_count(tmp_path: Path) -> None:
    lines = [f"2023-12-{1 + n:02} 06:00\n{_free(7000 + n)}" for n in range(N)]
    series = series_of(read_log(tmp_path, lines), "host_used_bytes")
    assert np.diff(series.x).tolist() == [86400] * (N - 1)


def test_without_dates_above_some_tables_the_times_of_day_count(tmp_path: Path) -> None:
    lines = [f"06:{n:02}:00\n{_free(7000 + n)}" for n in range(1, N)]
    lines = [f"Mon Dec  4 06:00:00 UTC 2023\n{_free(7000)}", *lines]
    series = series_of(read_log(tmp_path, lines), "host_used_bytes")
    assert np.diff(series.x).tolist() == [60] * (N - 1)


def test_a_date_that_begins_with_its_day_is_no_process(tmp_path: Path) -> None:
    lines = [
        f"04 November 2019 09:{n:02}:00 CET\n"
        f"   PID USERNAME  SIZE   RSS STATE  PRI NICE      TIME  CPU PROCESS/NLWP\n"
        f"  4412 appsrv   2131M {1200 + n}M sleep   59    0   3:11:54 1.8% java/84\n"
        f"Total: 1 processes, 84 lwps, load averages: 1.28, 1.04, 0.97"
        for n in range(N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert np.diff(series.x).tolist() == [60] * (N - 1)


def test_pmon_with_dates_passes_midnight(tmp_path: Path) -> None:
    lines = [
        "#Date       Time        gpu         pid   type     fb   ccpm    command",
        "#YYYYMMDD   HH:MM:SS    Idx           #    C/G     MB     MB    name",
    ]
    for n in range(N):
        moment = f"{20240811 + (50 + n) // 60}   {(23 + (50 + n) // 60) % 24:02}:{(50 + n) % 60:02}"
        lines.append(f" {moment}:00      0       1988     G     96      0    Xorg           ")
        lines.append(f" {moment}:00      0      77120     C   {2204 + n}      0    python3        ")
    recording = read_log(tmp_path, lines)
    series = series_of(recording, "vram_bytes", "python3")
    assert series.y.tolist() == [(2204 + n) * MIB for n in range(N)]
    assert np.diff(series.x).tolist() == [60] * (N - 1)


def test_days_without_marks_beside_times(tmp_path: Path) -> None:
    lines = [f"202402{28 + n // 2},{12 * (n % 2):02}:00:00,{500 + n}" for n in range(4)]
    lines += [f"202403{1 + n // 2:02},{12 * (n % 2):02}:00:00,{504 + n}" for n in range(8)]
    (series,) = read_log(tmp_path, ["date,time,rss_mb", *lines]).series
    assert np.diff(series.x).tolist() == [43200] * 11


def test_days_without_marks_are_no_seconds(tmp_path: Path) -> None:
    lines = [f"202402{20 + n},{500 + n}" for n in range(10)]
    (series,) = read_log(tmp_path, ["date,rss_mb", *lines]).series
    assert series.axis.kind is AxisKind.INDEX

"""Dates above what a command prints in a loop, and in columns of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError
from memdiag.recording.monitors.samplings import time_in_front
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


GPU = "device,VRAM Total Memory (B),VRAM Total Used Memory (B)"
USED = [9019998208 + 327_359_488 * n for n in range(N)]


@pytest.mark.parametrize(
    "date",
    [
        "2024-06-01 10:{n:02}:00",
        "2024-06-01T10:{n:02}:00+02:00",
        "10:{n:02}:00",
        "Sat Jun  1 10:{n:02}:00 CEST 2024",
        "Sat 01 Jun 2024 10:{n:02}:00 PM UTC",
        "=== 2024-06-01 10:{n:02}:00 ===",
        "{since_1970}",
    ],
)
@pytest.mark.parametrize("behind", [[], [""]])
def test_times_above_csv_whose_header_comes_again(
    tmp_path: Path, date: str, behind: list[str]
) -> None:
    lines = []
    for n, used in enumerate(USED):
        moment = date.format(n=n, since_1970=1717236000 + 60 * n)
        lines += [moment, GPU, f"card0,68702699520,{used}", *behind]
    recording = read_log(tmp_path, lines)
    (series,) = recording.series
    assert (series.process, series.y.tolist()) == ("card0", USED)
    assert np.diff(series.x).tolist() == [60] * (N - 1)
    assert not any("cells than the header" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("name;rss_mb;cpu", "train;{rss};41"),
        ("rss_mb,cpu", "{rss},41"),
        ("rss_mb\tcpu\tstate", "{rss}\t41\tR"),
        ("index, memory.used [MB], utilization.gpu [%]", "0, {rss} MB, 98 %"),
    ],
)
def test_any_monitor_may_print_csv_below_times(tmp_path: Path, header: str, row: str) -> None:
    lines = [f"2024-06-01 10:{n:02}:00\n{header}\n{row.format(rss=700 + n)}" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [(700 + n) * 1e6 for n in range(N)]
    assert np.diff(series.x).tolist() == [60] * (N - 1)


def test_rows_of_a_loop_keep_their_own_times_and_steps(tmp_path: Path) -> None:
    rows = {"Time,rss_mb": "10:{n:02}:07.000,{rss}", "step,rss_mb": "{n},{rss}"}
    kinds = {"Time,rss_mb": AxisKind.SECONDS, "step,rss_mb": AxisKind.STEP}
    for header, row in rows.items():
        lines = [
            f"2024-06-01 10:{n:02}:09\n{header}\n{row.format(n=n, rss=700 + n)}" for n in range(N)
        ]
        (series,) = read_log(tmp_path, lines).series
        assert (len(series.y), series.axis.kind) == (N, kinds[header])


def test_steps_of_several_runs_below_their_dates_are_no_processes(tmp_path: Path) -> None:
    runs = [[f"2024-06-0{day} 10:00:00", "step,rss_mb"] for day in (1, 2, 3)]
    lines = [line for run in runs for line in (*run, *(f"{n},{700 + n}" for n in range(N)))]
    (series,) = read_log(tmp_path, lines).series
    assert (len(series.y), series.axis.kind) == (3 * N, AxisKind.STEP)


def test_what_a_monitor_says_instead_of_a_table_is_left_out(tmp_path: Path) -> None:
    tables = [[f"10:{n:02}:00", GPU, f"card0,68702699520,{used}"] for n, used in enumerate(USED)]
    tables[5] = ["10:05:00", "WARNING: AMD GPU device(s) is/are in a low-power state"]
    (series,) = read_log(tmp_path, [line for table in tables for line in table]).series
    assert (series.process, len(series.y)) == ("card0", N - 1)
    assert np.diff(series.x).tolist() == [60] * 4 + [120] + [60] * 5


def test_losses_below_times_are_refused(tmp_path: Path) -> None:
    lines = [f"2024-06-01 10:{n:02}:00\nepoch,loss\n{n},0.{n}" for n in range(N)]
    with pytest.raises(ReadError):
        read_log(tmp_path, lines)


def test_seconds_since_1970_above_copies_of_proc(tmp_path: Path) -> None:
    lines = [
        f"--- {1712000000 + 60 * n}\nName:\tpython3\nPid:\t7\nVmRSS:\t {9000 + n} kB\nThreads:\t31"
        for n in range(N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [(9000 + n) * 1024 for n in range(N)]
    assert np.diff(series.x).tolist() == [60] * (N - 1)


_OF_PS = "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND"
_OF_TOP = "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND"


@pytest.mark.parametrize("front", ["2025-02-24 16:{:02}:04  ", "1740413{:02}0 ", "[16:{:02}:04] "])
@pytest.mark.parametrize(
    ("header", "row"),
    [
        (_OF_PS, "me  {}  304  3.4 21483920 {} pts/0  Rl+  09:12 0:29 python train.py -a 1"),
        (_OF_TOP, "  {} me  20  0  21.1g  {}  91m S  98.0  1.2  21:09.30 python train.py -a 1"),
        ("PID RSS CMD", "{} {} python train.py -a 1"),
    ],
)
@pytest.mark.parametrize("processes", [1, 2])
def test_times_in_front_of_rows_below_one_header(
    tmp_path: Path, front: str, header: str, row: str, processes: int
) -> None:
    lines = [" " * 20 + header]
    for n in range(10, 10 + N):
        lines += [front.format(n) + row.format(70 + p, 9000 + n + p) for p in range(processes)]
    series = [one for one in read_log(tmp_path, lines).series if one.metric == "rss_bytes"]
    assert len(series) == processes
    for p, one in enumerate(series):
        assert one.y.tolist() == [1024 * (9010 + n + p) for n in range(N)]
        assert one.axis.kind is AxisKind.SECONDS
        assert set(np.diff(one.x)) == {10 if front[0] == "1" else 60}


@pytest.mark.parametrize("front", ["3 ", "3.5 ", "1740413 ", "16:15 ", "run 16:15:04 ", "Mar 24 "])
def test_what_is_no_time_in_front(front: str) -> None:
    line = f"{front}71 900 python"
    assert time_in_front(line) == ("", line)


def test_a_number_in_front_of_rows_is_no_time(tmp_path: Path) -> None:
    lines = ["PID RSS CMD", *(f"1740413{n}0 ann 71 {900 + n} python" for n in range(10, 10 + N))]
    with pytest.raises(ReadError):
        read_log(tmp_path, lines)

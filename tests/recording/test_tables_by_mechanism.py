"""What makes readings of the cells of a table, each on tables that differ from the fixtures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.analysis.diagnose import diagnose
from memdiag.recording.parsing.column_meaning import recognise
from memdiag.recording.parsing.number_marks import decimal_marks
from memdiag.values.measurements import AxisKind, Role, Unit
from memdiag.values.verdict import Verdict

N = 12


@pytest.mark.parametrize("name", ["Processed (GB)", "Leídos (GB)", "Прочитано (ГБ)", "size_bytes"])
def test_beside_words_of_memory_a_unit_alone_is_no_memory(tmp_path: Path, name: str) -> None:
    rows = [f"{n},900,{n}" for n in range(N)]
    recording = read_log(tmp_path, [f"epoch,RSS (MB),{name}", *rows])
    assert [one.column for one in recording.series] == ["RSS (MB)"]
    assert f"not read as memory in use: {name}" in recording.notes
    (alone,) = read_log(tmp_path, [f"epoch,loss,{name}", *rows]).series
    assert alone.column == name


@pytest.mark.parametrize("name", ["gpu0_mb", "used (GB)", "host_shared_mb", "cpu_mb", "cache_mb"])
def test_words_of_amounts_and_of_what_has_memory_are_enough(name: str) -> None:
    assert not recognise(name).by_unit


def test_sizes_of_other_objects_are_no_memory(tmp_path: Path) -> None:
    rows = [
        row
        for n in range(N)
        for row in ({"step": n, "rss_bytes": 1 << 30}, {"step": n, "event": "saved", "bytes": n})
    ]
    (series,) = read_log(tmp_path, list(map(json.dumps, rows))).series
    assert series.column == "rss_bytes"


def test_a_key_that_is_a_unit_names_no_memory(tmp_path: Path) -> None:
    lines = [f"step={n} rss=1.5GiB bytes={n}000" for n in range(N)]
    recording = read_log(tmp_path, lines)
    assert [one.column for one in recording.series] == ["rss (bytes)"]
    assert 'not read as memory in use: "bytes"' in recording.notes


@pytest.mark.parametrize(
    ("number", "mark"),
    [
        ("1.204,5", ","),
        ("7\u202f340,5", ","),
        ("3.645.622", ","),
        ("0,016", ","),
        ("1,204.5", "."),
        ("1’204.5", "."),
        ("12,31,444", "."),
        ("1.425", ""),
        ("1,425", ""),
        ("10.120.130.140", ""),
        ("2.6.0", ""),
    ],
)
def test_a_number_shows_which_mark_stands_before_decimals(number: str, mark: str) -> None:
    assert list(decimal_marks([number])) == list(mark)


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u2009", "\u202f", "’"])
def test_blanks_stand_between_thousands(tmp_path: Path, blank: str) -> None:
    rows = [f"{n};7{blank}34{n % 10},5" for n in range(N)]
    (series,) = read_log(tmp_path, ["step;rss (MB)", *rows]).series
    assert series.y[:2].tolist() == [7340.5e6, 7341.5e6]


def test_one_cell_shows_the_marks_of_all(tmp_path: Path) -> None:
    rows = [f"{n}.000\t1.{n:03}\t{'0,25' if n % 2 else '0,5'}" for n in range(1, N)]
    (series,) = read_log(tmp_path, ["step\trss (MB)\tloss", *rows]).series
    assert series.x[:2].tolist() == [1000, 2000]
    assert series.y[:2].tolist() == [1001e6, 1002e6]


def test_a_count_that_would_fall_shows_the_marks(tmp_path: Path) -> None:
    rows = [f"{250 * n:,}".replace(",", ".") + "\t512" for n in range(1, N)]
    (series,) = read_log(tmp_path, ["step\trss (MB)", *rows]).series
    assert series.x[:5].tolist() == [250, 500, 750, 1000, 1250]


def test_points_that_may_be_either_are_noted(tmp_path: Path) -> None:
    rows = [f"{n}\t{(900, '1.100', 999, '1.020')[n % 4]}" for n in range(N)]
    notes = read_log(tmp_path, ["step\trss (MB)", *rows]).notes
    assert any("1.000 is one or one thousand" in note for note in notes)


def test_decimals_of_a_table_with_semicolons_stay(tmp_path: Path) -> None:
    rows = [f"{n};1.{n:03};0.{n:03}" for n in range(N)]
    (series,) = read_log(tmp_path, ["step;rss (MB);loss", *rows]).series
    assert series.y[1] == pytest.approx(1.001e6)


def test_a_log_has_points_between_thousands(tmp_path: Path) -> None:
    lines = [
        f"9:{n:02}:22.408 10.120.130.140 Schritt {n}.000/9.000: loss 0,{n + 10}1, RSS 1.{n:03} MB"
        for n in range(1, N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.x[:2].tolist() == [1000, 2000]
    assert series.y[:2].tolist() == [1001e6, 1002e6]


def test_units_of_different_size_are_no_count(tmp_path: Path) -> None:
    cells = ["975 MiB", "990 MiB", "1.002 GiB", *["1.250 GiB"] * N]
    rows = [f"{n}|{cell}" for n, cell in enumerate(cells)]
    (series,) = read_log(tmp_path, ["step|rss", *rows]).series
    assert series.y[2] == pytest.approx(1.002 * (1 << 30))


@pytest.mark.parametrize(("name", "per_second"), [("ts_us", 10**6), ("timestamp_ms", 10**3)])
@pytest.mark.parametrize("order", [range(N), range(N)[::-1], [n * 5 % N for n in range(N)]])
def test_times_since_1970_are_a_clock_in_any_unit_and_order(
    tmp_path: Path, name: str, per_second: int, order: Sequence[int]
) -> None:
    rows = [f"{(1_710_000_000 + 60 * n) * per_second},{900 + n}" for n in order]
    (series,) = read_log(tmp_path, [f"{name},rss_mb", *rows]).series
    at = np.argsort(series.x)
    assert series.axis.kind is AxisKind.SECONDS
    assert series.x[at].tolist() == pytest.approx([60 * n for n in range(N)])
    assert bool((np.diff(series.y[at]) > 0).all())


def test_an_epoch_may_be_a_time_since_1970(tmp_path: Path) -> None:
    rows = [f"{1_710_000_000 + 10 * n},900" for n in range(N)]
    (series,) = read_log(tmp_path, ["epoch,rss_mb", *rows]).series
    assert series.axis.kind is AxisKind.SECONDS
    assert series.x.tolist() == [10 * n for n in range(N)]


def test_unsorted_uptimes_are_a_clock_but_durations_are_none(tmp_path: Path) -> None:
    uptimes = [f"{5000 + 10 * (n * 5 % N)},900" for n in range(N)]
    (series,) = read_log(tmp_path, ["uptime_s,rss_mb", *uptimes]).series
    assert series.axis.name == "uptime_s"
    durations = [f"{60 + 4 * (n * n * 0.6180339 % 1):.3f},900" for n in range(3 * N)]
    recording = read_log(tmp_path, ["time_s,rss_mb", *durations])
    assert recording.series[0].axis.name == "row"
    assert "not read as a clock, since it goes back often: time_s" in recording.notes


def test_durations_that_fall_are_not_rows_with_the_newest_first(tmp_path: Path) -> None:
    """The first files are the slowest."""
    falling = [5 + 20 * 0.8**n for n in range(N)]
    for each in (falling, [*falling[:-2], falling[-1], falling[-2]]):
        rows = [f"{n},{each[n]:.1f},{900 + 10 * n}" for n in range(N)]
        (series,) = read_log(tmp_path, ["file,seconds,rss_mb", *rows]).series
        assert series.y.tolist() == [(900 + 10 * n) * 1e6 for n in range(N)]
        assert series.axis.kind is not AxisKind.SECONDS


def test_with_the_newest_rows_first_step_and_time_are_kept(tmp_path: Path) -> None:
    rows = [f"{n},2026-03-01 08:{n:02}:00,{900 + n}" for n in range(N)][::-1]
    (series,) = read_log(tmp_path, ["step,time,rss_mb", *rows]).series
    assert series.axis.name == "step"
    assert series.at_s is not None
    assert series.at_s.tolist() == [60 * n for n in range(N)][::-1]


def test_blocks_of_different_starts_do_not_overlap(tmp_path: Path) -> None:
    steps = [*range(200, 800, 50), *range(1, N), *range(1, N)]
    rows = [f"{step},{900 + n}" for n, step in enumerate(steps)]
    (series,) = read_log(tmp_path, ["step,rss_mb", *rows]).series
    assert bool((np.diff(series.x) > 0).all())


def test_steps_that_contradict_the_clock_are_not_the_axis(tmp_path: Path) -> None:
    steps = [*range(0, 1000, 50), *range(700, 1700, 50)]  # a run that was resumed without a drop
    rows = [f"{30 * n},{step},{900 + n}" for n, step in enumerate(steps)]
    recording = read_log(tmp_path, ["time_s,step,rss_mb", *rows])
    assert recording.series[0].axis.name == "time_s"
    assert "time goes back where step goes on: time_s is the axis" in recording.notes
    (asked_for,) = read_log(tmp_path, ["time_s,step,rss_mb", *rows], x="step").series
    assert asked_for.axis.name == "step"
    assert asked_for.at_s is None


def test_a_column_of_memory_without_any_reading_is_not_called_stable(tmp_path: Path) -> None:
    rows = [f"{n},<ERR>,{400 + n % 3}" for n in range(5 * N)]
    recording = read_log(tmp_path, ["step,rss,handles", *rows])
    assert any("no cell of rss is a number" in note for note in recording.notes)
    assert diagnose(recording).verdict is Verdict.INCONCLUSIVE


def test_a_worker_without_readings_is_named(tmp_path: Path) -> None:
    rows = [row for n in range(N) for row in (f"{n},a,900", f"{n},b,")]
    recording = read_log(tmp_path, ["time,worker,rss_mb", *rows])
    assert [one.process for one in recording.series] == ["a"]
    assert "no readings of b" in recording.notes


def test_lines_above_a_header_may_be_filled_up(tmp_path: Path) -> None:
    above = ["Report;;;", "Host:;SRV3;;", "Made at:;15.03.2024 07:00;;", ";;;"]
    rows = [f"{n};09:{n:02}:00;1204332;9" for n in range(N)]
    (series, _) = read_log(tmp_path, [*above, "Step;Time;Working Set (KB);Handles", *rows]).series
    assert series.column == "Working Set (KB)"
    assert series.x.tolist() == list(range(N))


@pytest.mark.parametrize("between", [[], [""]])
def test_names_with_a_value_each_may_stand_above_a_header(
    tmp_path: Path, between: list[str]
) -> None:
    above = ["Label,mem_free", "Host,srv-3", 'Begin,"3/5/2024, 7:00 AM"', "Period,60", *between]
    rows = [f"2024-03-05 07:{n:02}:00,{1204332 + n}" for n in range(N)]
    (series,) = read_log(tmp_path, [*above, "Timestamp,rss_kb", *rows]).series
    assert (series.column, series.x[1], series.y[0]) == ("rss_kb", 60, 1204332e3)


def test_a_header_may_stand_behind_the_mark_of_a_comment(tmp_path: Path) -> None:
    rows = [f"{200 * n:e} {2.5 / (n + 1):e} {910.25 + n:e}" for n in range(N)]
    (series,) = read_log(tmp_path, ["# step loss rss_MiB", *rows]).series
    assert (series.axis.name, series.x[1], series.y[0]) == ("step", 200, 910.25 * 2**20)


def test_a_text_that_differs_in_each_row_names_no_run(tmp_path: Path) -> None:
    rows = [f"03/14/2024 13:{n:02}\t{100 * n}\t{900 + n}" for n in range(N)][::-1]
    (series,) = read_log(tmp_path, ["Checked\tCalls\trss_mb", *rows]).series
    assert series.axis.name == "Calls"


def test_a_monitor_that_fails_often_has_a_table(tmp_path: Path) -> None:
    rows = [f"| {n} | {900 + n if n % 3 == 0 else 'ERR'} |" for n in range(3 * N)]
    recording = read_log(tmp_path, ["| step | RSS (MB) |", "|---|---|", *rows])
    assert recording.series[0].unread_share == pytest.approx(2 / 3)


def test_lines_between_objects_are_left_out(tmp_path: Path) -> None:
    lines = [json.dumps({"step": n, "rss_mb": 900 + n, "loss": float("nan")}) for n in range(N)]
    lines[5:5] = ["Traceback (most recent call last):", "ValueError: {}"]
    recording = read_log(tmp_path, lines)
    assert recording.series[0].x.tolist() == list(range(N))
    assert any("2 lines, the first is line 6" in note for note in recording.notes)


def test_a_log_with_few_objects_is_text(tmp_path: Path) -> None:
    lines = ['{"config": 1}', *(f"step {n} rss {900 + n} MB" for n in range(N))]
    assert read_log(tmp_path, lines).series[0].column == "rss (bytes)"


@pytest.mark.parametrize("title", ["mem_used_percent", "MemoryUtilization"])
def test_of_several_statistics_the_average_is_read(tmp_path: Path, title: str) -> None:
    points = [
        {"Timestamp": 1.7e9 + 60 * n, "Maximum": 50 + n, "Average": 20 + n, "Unit": "Percent"}
        for n in range(N)
    ]
    (series,) = read_log(tmp_path, json.dumps({"Label": title, "Datapoints": points})).series
    assert series.unit is Unit.PERCENT
    assert series.y.tolist() == [20 + n for n in range(N)]


@pytest.mark.parametrize(
    ("names", "roles"),
    [
        ("stats.allocated,stats.resident", [Role.IN_USE, Role.RESIDENT]),
        ("heapAlloc_bytes", [Role.IN_USE]),
        ("mem_active_bytes,mem_available_bytes", [Role.HOST, Role.HOST]),
        ("node_memory_Active_bytes", [Role.HOST]),
        ("allocated_mb,reserved_mb", [Role.DEVICE_ALLOCATED, Role.DEVICE_RESERVED]),
        ("cuda_heap_alloc_mb", [Role.DEVICE_ALLOCATED]),
    ],
)
def test_what_is_allocated_is_of_a_device_or_of_the_host(
    tmp_path: Path, names: str, roles: list[Role]
) -> None:
    rows = [f"{n}" + f",{900 + n}" * len(roles) for n in range(N)]
    series = read_log(tmp_path, [f"step,{names}", *rows]).series
    assert [one.role for one in series] == roles


@pytest.mark.parametrize("total", ["显存总量 (MB)", "メモリ合計 (MB)", "전체 메모리 (MB)"])
def test_totals_in_other_scripts_are_no_memory_in_use(tmp_path: Path, total: str) -> None:
    recording = read_log(tmp_path, [f"step,rss_mb,{total}", *(f"{n},9,99" for n in range(N))])
    assert [one.column for one in recording.series] == ["rss_mb"]


def test_an_increase_in_brackets_is_no_column_and_a_header_may_come_again(tmp_path: Path) -> None:
    above = ["---- data ---- --- load ---", "keys   mem   requests   links "]
    rows = [f"{n}00   {n}.5M   {9 * n} (+{n})   7  " for n in range(1, N)]
    series = series_of(read_log(tmp_path, [*above, *rows]), "mem_bytes")
    assert series.y.tolist() == [(n + 0.5) * 1e6 for n in range(1, N)]
    again = read_log(tmp_path, [*above, *rows[:5], *above, *rows[5:]])
    assert series_of(again, "mem_bytes").y.tolist() == series.y.tolist()
    assert not any("without a number" in note for note in again.notes)


@pytest.mark.parametrize(("first", "seconds"), [(8, 60 * 20), (0, 20)])
def test_times_of_a_day_begin_many_steps_after_midnight(
    tmp_path: Path, first: int, seconds: int
) -> None:
    times = [divmod(first * 60 + 20 * n, 60) for n in range(36)]
    rows = [f"{a:02}:{b:02},{n}" for n, (a, b) in enumerate(times)]
    (series,) = read_log(tmp_path, ["Zeit,rss_mb", *rows]).series
    assert series.x.tolist() == [seconds * n for n in range(36)]


def test_rows_below_a_repeated_header_have_a_name_without_one_above(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            "               size       inuse        free   mmode",
            f"memory      16777216     {2410000 + n:7}    {14366620 - n:8}     Ded",
            "pg space     2097152        8812",
            "",
        )
    ]
    recording = read_log(tmp_path, lines)
    used = series_of(recording, "inuse", "memory")
    assert used.axis.kind is AxisKind.TICK
    assert used.y.tolist() == [2410000 + n for n in range(N)]
    assert series_of(recording, "inuse", "pg space").y.tolist() == [8812] * N


def test_cells_below_a_repeated_header_are_of_the_nearest_name(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            "NAME   PORTS  STATUS          REFRESHED  MEM USE  VERSION",
            f"osd.3         running ({100 + n}m)  5m ago     {900 + n:6}M  17.2.6",
        )
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.column == "MEM USE"
    assert series.y.tolist() == [(900 + n) * 1e6 for n in range(N)]


def test_a_header_that_comes_again_above_an_axis_is_of_a_log(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            "   Epoch    GPU_mem   box_loss  Instances",
            f"   {n + 1}/{N}      {4 + n / 100:.2f}G        1.4        {120 + n}: 100%|##| 231/231",
        )
    ]
    (series,) = read_log(tmp_path, lines).series
    assert "epoch" in series.axis.name.lower()
    assert series.y.tolist() == pytest.approx([(4 + n / 100) * 1e9 for n in range(N)])


def test_time_that_a_program_simulates_is_no_clock(tmp_path: Path) -> None:
    """Forty readings within half a millisecond: nothing prints as often."""
    lines = [f"cycle={100 * n} time={n / 8e4:.6e} dt=1.2e-07 rss=4{n:02d} MB" for n in range(40)]
    (series,) = read_log(tmp_path, lines).series
    assert (series.axis.name, series.axis.kind) == ("cycle", AxisKind.INDEX)
    lines = [f"time={0.25 * n:.6e} rss=4{n:02d} MB" for n in range(40)]
    (series,) = read_log(tmp_path, lines).series
    assert (series.axis.name, series.axis.kind) == ("time", AxisKind.SECONDS)

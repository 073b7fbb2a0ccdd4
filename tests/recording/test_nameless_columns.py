"""Columns without names: nvidia-smi's without its header, and pairs of numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError
from memdiag.values.measurements import Recording

MIB = 2.0**20
ROWS = 30
TOTAL = 24564


def _smi(folder: Path, order: str, used: list[int], gpus: int = 1) -> Recording:
    lines = []
    for at, each in enumerate(used):
        amounts = {"used": each, "free": TOTAL - each, "total": TOTAL}
        cells = ", ".join(f"{amounts[name]} MiB" for name in order.split())
        lines += [f"2024/05/01 10:00:{at:02d}.123, {gpu}, {cells}" for gpu in range(gpus)]
    return read_log(folder, lines)


@pytest.mark.parametrize(
    "order", ["total free used", "used free total", "free used total", "used free", "free used"]
)
def test_used_memory_is_the_one_that_rises_in_any_order(tmp_path: Path, order: str) -> None:
    recording = _smi(tmp_path, order, [4000 + 20 * at for at in range(ROWS)])
    used, free = (
        series_of(recording, "memory_used_bytes"),
        series_of(recording, "memory_free_bytes"),
    )
    assert (used.y[0], used.y[-1]) == (4000 * MIB, (4000 + 20 * (ROWS - 1)) * MIB)
    assert free.falling
    assert used.unread_share == 0


@pytest.mark.parametrize("order", ["total used free", "free", "free total"])
def test_a_column_without_a_name_that_falls_may_be_free_memory(tmp_path: Path, order: str) -> None:
    recording = _smi(tmp_path, order, [4000 + 20 * at for at in range(ROWS)])
    assert all(series.unread_share > 0 for series in recording.series)


def test_amounts_of_several_gpus_are_named_by_those_of_each(tmp_path: Path) -> None:
    lines = [
        f"2024/05/01 10:00:{at:02d}.123, {gpu}, {used} MiB, {total - used} MiB, {total} MiB"
        for at in range(ROWS)
        for gpu, used, total in ((0, 20000, 24564), (1, 4000 + 20 * at, 16384))
    ]
    recording = read_log(tmp_path, lines)
    ends = [series_of(recording, "memory_used_bytes", f"gpu {gpu}").y[-1] / MIB for gpu in (0, 1)]
    assert ends == [20000, 4580]


@pytest.mark.parametrize("between", [", ", " ", "\t"])
@pytest.mark.parametrize(
    ("first", "second"),
    [("memory", "degrees"), ("degrees", "memory"), ("memory", "percent")],
)
def test_of_two_numbers_a_line_either_may_be_the_memory(
    tmp_path: Path, between: str, first: str, second: str
) -> None:
    values = {"memory": lambda at: 4000 + 20 * at, "degrees": lambda at: 60 + at % 9}
    values["percent"] = lambda at: 90 + at % 7
    lines = [f"{values[first](at)}{between}{values[second](at)}" for at in range(120)]
    with pytest.raises(ReadError, match="2 columns have no names"):
        read_log(tmp_path, lines)


def test_steps_and_values_are_not_numbers_with_thousands(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="2 columns have no names"):
        read_log(tmp_path, [f"{10 * at},{500 + 4 * at}" for at in range(ROWS)])


def test_numbers_with_thousands_by_themselves_are_one_column(tmp_path: Path) -> None:
    (series,) = read_log(tmp_path, [f"{4_000 + 37 * at:,}" for at in range(ROWS)]).series
    assert (series.y[0], series.y[-1]) == (4000, 4000 + 37 * (ROWS - 1))


@pytest.mark.parametrize("stride", [1, 50])
@pytest.mark.parametrize("start", [0, 1])
def test_behind_a_count_stands_the_memory(tmp_path: Path, stride: int, start: int) -> None:
    lines = [f"{start + stride * at} {4000 + at % 7}" for at in range(30)]
    memory = series_of(read_log(tmp_path, lines), "memory")
    assert memory.x.tolist() == [start + stride * at for at in range(30)]


def _timed(folder: Path, name: str) -> Recording:
    lines = [f"2024-06-02T08:{at:02d}:00+02:00 {81264640 + 8192 * at}" for at in range(ROWS)]
    return read_log(folder, lines, name)


def test_the_name_of_a_file_names_its_only_numbers(tmp_path: Path) -> None:
    recording = _timed(tmp_path, "cgroup_memory_current.txt")
    (series,) = recording.series
    assert (series.column, series.x[1], series.y[1]) == ("cgroup_memory_current", 60, 81272832)
    assert any("by the name of the file" in note for note in recording.notes)


@pytest.mark.parametrize("name", ["log.txt", "loss.txt", "memory_read_rate.txt"])
def test_numbers_that_no_name_says_to_be_memory_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReadError, match="2 columns have no names"):
        _timed(tmp_path, name)


@pytest.mark.parametrize(
    ("row", "header"),
    [
        (
            "2022/12/01 09:10:{at:02}.904, {used}, 81",
            "timestamp,memory.used [MiB],utilization.gpu [%]",
        ),
        (
            "2022/12/01 09:10:{at:02}.904, {used}, 81, 62",
            "timestamp,memory.used [MiB],utilization.gpu [%],column_4",
        ),
        ("2022-12-01 09:10:{at:02},{used},{at}7", "time,rss_mb,column_3"),
        ("2022-12-01 09:10:{at:02} {used} {at}7", "date time rss_mb column_4"),
        ("{at};{used};{at}7", "step;rss_mb;column_3"),
    ],
)
def test_the_hint_shows_a_header_with_which_the_file_is_read(
    tmp_path: Path, row: str, header: str
) -> None:
    lines = [row.format(at=at, used=2810 + 7 * (at % 5) + 40 * at) for at in range(ROWS)]
    with pytest.raises(ReadError, match="columns have no names") as caught:
        read_log(tmp_path, lines)
    assert (caught.value.remedy or "").endswith(
        f"with a name for each above them, such as: {header}"
    )
    series = next(one for one in read_log(tmp_path, [header, *lines]).series)
    unit = MIB if "MiB" in header else 1e6
    assert (series.y[0], series.x[1] - series.x[0]) == (2810 * unit, 1)


def test_the_hint_for_many_columns_is_short(tmp_path: Path) -> None:
    lines = [",".join(str(at * column) for column in range(1, 41)) for at in range(ROWS)]
    with pytest.raises(ReadError) as caught:
        read_log(tmp_path, lines)
    assert (caught.value.remedy or "").endswith(
        ": step,rss_mb,column_3,column_4,column_5,column_6,..."
    )


@pytest.mark.parametrize(
    "name", ["Container memory-data-2024-05-31 10_11_12", "RSS-data-as-series"]
)
def test_the_title_of_a_panel_names_its_series(tmp_path: Path, name: str) -> None:
    rows = [f'"2024-05-30 {at // 2:02d}:{30 * (at % 2):02d}:00",{10**9 + at},4' for at in range(40)]
    recording = read_log(tmp_path, ['"Time","web-5f7c","api-1b2c"', *rows], f"{name}.csv")
    first, second = recording.series
    assert (first.column, first.x[1], first.y[1]) == (
        f"{name.split('-', maxsplit=1)[0]} web-5f7c",
        1800,
        1e9 + 1,
    )
    assert second.y[-1] == 4


def test_a_panel_of_something_else_names_no_memory(tmp_path: Path) -> None:
    rows = [f'"2024-05-30 10:{at:02d}:00",{10**9 + at}' for at in range(40)]
    with pytest.raises(ReadError):
        read_log(tmp_path, ['"Time","web-5f7c"', *rows], "Network traffic-data-2024-05-31.csv")

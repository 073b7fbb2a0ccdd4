"""Tables of very many columns: an answer, or a reason why there is none, and soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from commandline import called

from memdiag.errors import ReadError
from memdiag.recording.parsing.cells import holds_bytes, to_numbers
from memdiag.recording.read import read
from memdiag.recording.read_options import ReadOptions, parse_metric

MANY = 30_000
# A header of more than 64 KiB, which was all that was looked at to find it.
WIDE = 12_000
ROWS = 6


def table(path: Path, names: list[str], cell: Callable[[int, int], object]) -> str:
    """A CSV file whose first column counts."""
    rows = [
        ",".join([str(row), *(str(cell(row, at)) for at in range(1, len(names)))])
        for row in range(ROWS)
    ]
    path.write_text("\n".join([",".join(names), *rows]) + "\n")
    return str(path)


def others(count: int) -> list[str]:
    return [f"layer {at}" for at in range(count)]


def test_memory_among_thirty_thousand_columns_is_found_within_seconds(tmp_path: Path) -> None:
    names = ["step", *others(MANY - 2), "rss_mb"]
    path = table(tmp_path / "log.csv", names, lambda row, at: 500 + row * (at == MANY - 1))
    began_s = time.process_time()
    done = called("analyze", "-v", path)
    assert time.process_time() - began_s < 6  # 1.5 on a machine with nothing else to do
    assert "RSS" in done.stdout


def test_a_wide_parquet_file_is_read(tmp_path: Path) -> None:
    names = ["step", *others(WIDE), "rss_mb"]
    path = tmp_path / "log.parquet"
    pl.DataFrame({name: range(ROWS) for name in names}).write_parquet(path)
    (series,) = read(str(path)).series
    assert (series.axis.name, series.y.tolist()) == ("step", [n * 1e6 for n in range(ROWS)])


@pytest.mark.parametrize("cell", ["abc7", "7 bx", "1_1 km", "7 b"])
def test_a_wide_table_of_text_is_read(tmp_path: Path, cell: str) -> None:
    names = ["step", "rss_mb", *others(WIDE)]
    path = table(tmp_path / "log.csv", names, lambda row, at: 500 if at == 1 else cell)
    if cell == "7 b":
        with pytest.raises(ReadError, match="more than 2,000 of its columns"):
            read(path)
        return
    (series,) = read(path).series
    assert (series.axis.name, series.y.tolist()) == ("step", [500e6] * ROWS)


def test_more_columns_of_memory_than_are_judged_are_refused(tmp_path: Path) -> None:
    """Any of those that were left out might be the one that grows."""
    names = ["step", *(f"rss_{at}_mb" for at in range(WIDE))]
    path = table(tmp_path / "log.csv", names, lambda row, at: 500 + at)
    done = called("analyze", path)
    assert done.returncode == 2
    words = " ".join(done.stderr.split())
    assert "more than 2,000 of its columns look like memory or counts: too many" in words
    assert "hint: choose columns: --metric NAME, once for each" in words
    chosen = ReadOptions(metrics=(parse_metric("rss_7_mb"), parse_metric("rss_8_mb")))
    assert [series.y[0] for series in read(path, chosen).series] == [508e6, 509e6]


@pytest.mark.parametrize(
    ("name", "cell", "what"),
    [
        ("time", "2024-01-01 00:00:07", "steps or times"),
        ("worker", "w7", "names of processes"),
    ],
)
def test_more_axes_or_labels_than_make_sense_are_refused(
    tmp_path: Path, name: str, cell: str, what: str
) -> None:
    path = table(tmp_path / "log.csv", ["step", "rss_mb", *[name] * WIDE], lambda row, at: cell)
    with pytest.raises(ReadError, match=what):
        read(path)


def test_a_wide_recording_of_memdiags_is_refused_by_its_counters(tmp_path: Path) -> None:
    names = ["at_s", "step", "phase", "pid", "process", "rss_bytes", *others(WIDE)]
    path = table(tmp_path / "log.csv", names, lambda row, at: {2: "", 4: "main"}.get(at, 7))
    with pytest.raises(ReadError, match="more than 2,000 of its columns"):
        read(path)


def test_a_chart_of_very_many_runs_is_refused(tmp_path: Path) -> None:
    names = ["Step", "run 0 - rss_mb__MIN", *(f"run {at} - rss_mb" for at in range(WIDE))]
    path = table(tmp_path / "log.csv", names, lambda row, at: 500)
    with pytest.raises(ReadError, match="1 metrics of 12,000 runs"):
        read(path)


def test_wide_rows_without_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text((",".join(["7"] * 3 * WIDE) + "\n") * ROWS)
    with pytest.raises(ReadError, match="its 36000 columns have no names"):
        read(str(path))


@pytest.mark.parametrize("text", ["x" * 3_000_000, "[" * 3_000_000, "7," * 1_500_000])
def test_one_endless_line_is_no_table(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(ReadError):
        read(str(path))


@pytest.mark.parametrize(
    "cells",
    [
        ["580 MB (+62 MB)", "590 MB (+10 MB)"],
        ["1.2GiB / 8GiB", None],
        ["abc", "x7", "7 km"],
        ["5", "6"],
        ["7 b", "8 b"],
        ["**512** MiB"],
        ["step 5 bytes"],
        ["t+240", "t+250 KB"],
        ["17,412 MB", "-"],
        [None, None],
        ["5 %", "6 %"],
        ["990m", "1000m"],
        ["1e5B"],
        ["5 мб"],
        ["5\u00a0MB"],
        ["3 kB\t"],
    ],
)
def test_units_in_cells_are_seen_without_reading_them(cells: list[str | None]) -> None:
    column = pl.Series(cells, dtype=pl.String)
    unit = to_numbers(column).unit
    assert holds_bytes(column) == (unit is not None and unit.value == "bytes")


@pytest.mark.timeout(30)
def test_json_of_a_hundred_thousand_members_is_refused_at_once(tmp_path: Path) -> None:
    members = ", ".join(f'"c{n}_mb": {n}' for n in range(100_000))
    (tmp_path / "a.jsonl").write_text(f'{{"step": 1, {members}}}\n' * 3)
    done = called("analyze", tmp_path / "a.jsonl")
    assert done.returncode == 2
    assert "thousands of members" in done.stderr

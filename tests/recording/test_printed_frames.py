"""Data frames as pandas prints them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log

HOUR_S = 3600.0
N = 12
PROMPT = ">>> df = pd.read_parquet('mem.parquet'); df"
SIZE = ["", f"[{N} rows x 3 columns]"]


def _times(after: str = "") -> list[str]:
    return [f"2025-04-01 {at:02d}:00:00{after}" for at in range(N)]


def _check(folder: Path, lines: list[str], axis: str) -> None:
    series = read_log(folder, lines).series[0]
    there = np.isfinite(series.y)
    assert (series.column, series.axis.name) == ("rss_mb", axis)
    assert series.x[there].tolist() == [HOUR_S * at for at in range(N)]
    assert series.y[there].tolist() == [(500 + 7 * at) * 1e6 for at in range(N)]


@pytest.mark.parametrize("after", ["", ".250000", "+00:00"])
@pytest.mark.parametrize("columns", ["cpu", "..."])
def test_a_column_of_times_is_one_column(tmp_path: Path, columns: str, after: str) -> None:
    cell = columns if columns == "..." else "3.5"
    rows = [
        f"{at:<4} {time} {500 + 7 * at:>8}.0 {cell:>4}   0.0"
        for at, time in enumerate(_times(after))
    ]
    rows.insert(5, "...                  ...      ...  ...   ...")
    _check(tmp_path, [PROMPT, f"       ts   rss_mb  {columns}  swap_mb", *rows, *SIZE], "ts")


@pytest.mark.parametrize("name", ["", "when"])
def test_times_may_be_the_index(tmp_path: Path, name: str) -> None:
    rows = [f"{time}   {500 + 7 * at}.0   {at % 5}.0" for at, time in enumerate(_times())]
    header = ["                     rss_mb  cpu", *([f"{name}            "] if name else [])]
    _check(tmp_path, [PROMPT, *header, *rows, *SIZE], name)


def test_a_date_and_a_time_below_two_names_stay_two_columns(tmp_path: Path) -> None:
    rows = [f"{time} {500 + 7 * at} 0.5" for at, time in enumerate(_times())]
    series = read_log(tmp_path, ["date time rss_mb cpu", *rows]).series[0]
    assert series.x.tolist() == [HOUR_S * at for at in range(N)]
    assert series.y.tolist() == [(500 + 7 * at) * 1e6 for at in range(N)]


def test_a_title_of_as_many_words_as_there_are_columns_is_no_header(tmp_path: Path) -> None:
    rows = [
        f"{time}\t{1711929600 + 3600 * at}\t{9_000_000_000 - at}"
        for at, time in enumerate(_times())
    ]
    (series,) = read_log(tmp_path, ["node-02: Available memory", *rows]).series
    assert series.column == "Available memory"

"""Tables whose columns have their meaning and unit from the title above them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log

from memdiag.errors import ReadError

N = 12
TITLE = "Memory before / after each call to render() (MB, psutil RSS)"
ROWS = [f"{n:4}    {220 + n}.3    {232 + n}.5   +12.2" for n in range(1, N + 1)]
BELOW = ["", "-> every call leaves ~12 MB behind, gc.collect() makes no difference"]


def _columns(folder: Path, lines: list[str]) -> dict[str, list[float]]:
    return {one.column: one.y.tolist() for one in read_log(folder, lines).series}


@pytest.mark.parametrize("title", [TITLE, "RSS in MB", "Memory usage per call, MB:"])
@pytest.mark.parametrize(
    "rule", ["-----------------------------", "----  -------  -------  ------", ""]
)
def test_columns_are_of_what_the_title_says(tmp_path: Path, title: str, rule: str) -> None:
    header = ["call   before    after    diff", *([rule] if rule else [])]
    recording = read_log(tmp_path, [title, "", *header, *ROWS, *BELOW])
    found = {one.column: one for one in recording.series}
    assert found.keys() == {"memory_before_MB", "memory_after_MB"}
    assert {one.axis.name for one in recording.series} == {"call"}
    after = [y for y in found["memory_after_MB"].y.tolist() if np.isfinite(y)]
    assert after == pytest.approx([(232.5 + n) * 1e6 for n in range(1, N + 1)])


def test_columns_of_a_markdown_table(tmp_path: Path) -> None:
    rows = [f"| {n} | {500 + n} | {520 + n} |" for n in range(N)]
    lines = ["### Memory (MiB)", "", "| step | idle | fully loaded |", "|---|---|---|", *rows]
    found = _columns(tmp_path, lines)
    assert found["memory_idle_MiB"] == [(500 + n) * 2**20 for n in range(N)]
    assert found["memory_fully_loaded_MiB"][0] == 520 * 2**20


def test_columns_of_csv_below_a_title(tmp_path: Path) -> None:
    lines = ["Memory in GB", "step,trainer,loss", *(f"{n},{2 + n / 8},0.{n}" for n in range(N))]
    assert _columns(tmp_path, lines) == {
        "memory_trainer_GB": [(2 + n / 8) * 1e9 for n in range(N)],
    }


@pytest.mark.parametrize(
    "title",
    [
        "Files before / after each call to render() (MB, on disk)",
        "Memory bandwidth of each call (MB/s)",
        "A machine with memory of 64 MB",
    ],
)
def test_titles_of_something_else(tmp_path: Path, title: str) -> None:
    header = ["call   before    after    diff", "-----------------------------"]
    with pytest.raises(ReadError):
        read_log(tmp_path, [title, "", *header, *ROWS])


def test_names_that_say_themselves_what_they_are_stay(tmp_path: Path) -> None:
    lines = ["Memory in GB", "step,rss_mb,size", *(f"{n},{n + 200},{n + 7}" for n in range(N))]
    assert _columns(tmp_path, lines) == {"rss_mb": [(n + 200) * 1e6 for n in range(N)]}

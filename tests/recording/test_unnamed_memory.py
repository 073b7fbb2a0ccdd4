"""Columns of whole pages whose names do not mention memory, and numbers that only look so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from logs import read_log

from memdiag.errors import ReadError
from memdiag.recording.read import read
from memdiag.values.measurements import Unit

ROWS = 60
PAGE = 4096


def table(path: Path, first: str, second: Callable[[int], int], third: Callable[[int], int]) -> str:
    names = first.split(",")
    rows = [
        f"2026-01-05 10:{row // 2:02d}:{row % 2 * 30:02d},{second(row)},{third(row)}"
        for row in range(ROWS)
    ]
    path.write_text("\n".join([",".join(["time", *names]), *rows]) + "\n", "utf-8")
    return str(path)


def pages(seed: int, least: int = 80_000) -> Callable[[int], int]:
    drawn = np.random.default_rng(seed).integers(least, least + 4000, ROWS)
    return lambda row: int(drawn[row]) * PAGE


def test_whole_pages_in_all_columns_are_memory_and_a_note_says_so(tmp_path: Path) -> None:
    recording = read(table(tmp_path / "log.csv", "web-7d9c,web-4xkq", pages(1), pages(2)))
    assert [one.unit.value for one in recording.series] == ["bytes", "bytes"]
    assert recording.series[0].y[0] == pages(1)(0)
    assert any("taken as memory in bytes" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("names", "second", "third"),
    [
        ("web-7d9c,ids", pages(1), lambda row: 7_000_003 + row),
        ("seen,kept", lambda row: row * 8192 * 300 + 2**21, lambda row: (row + 512) * 4096),
        ("seen,kept", lambda row: 2 ** (21 + row % 9), lambda row: 2 ** (22 + row % 7)),
        ("large,small", pages(1), lambda row: PAGE * (1 + row % 40)),
        ("tokens,web", pages(1), pages(2)),
        ("disk_a,disk_b", pages(1), pages(2)),
        ("web-7d9c/s,web-4xkq/s", pages(1), pages(2)),
        ("a,b", lambda row: pages(1)(row) + 8, pages(2)),
    ],
    ids=["ids", "counts", "powers of two", "few pages", "tokens", "disks", "rates", "no pages"],
)
def test_other_numbers_are_refused(
    tmp_path: Path, names: str, second: Callable[[int], int], third: Callable[[int], int]
) -> None:
    with pytest.raises(ReadError, match="no column looks like memory"):
        read(table(tmp_path / "log.csv", names, second, third))


def test_a_sum_of_promtool_has_no_name(tmp_path: Path) -> None:
    rows = [f"{pages(3)(row)} @[{1741683600 + 60 * row}]" for row in range(ROWS)]
    log = tmp_path / "log.txt"
    log.write_text("\n".join(['{pod="web-0"} =>', *rows]) + "\n", "utf-8")
    (one,) = read(str(log)).series
    assert (one.unit.value, one.y[0]) == ("bytes", pages(3)(0))


@pytest.mark.parametrize(
    "line",
    [
        "19:{n:02}  thumbs.py  {mb} MB   cpu {cpu}%",
        "[19:{n:02}] nginx: {mb} MB (cpu {cpu}%)",
        "19:{n:02} plex {mb} MB {cpu}% CPU",
        "19:{n:02} thumbs.py {mb} MB",
    ],
)
def test_the_size_of_a_process_is_memory(tmp_path: Path, line: str) -> None:
    text = [line.format(n=5 * n, mb=1150 + n, cpu=3 + n * 7 % 30) for n in range(12)]
    posted = ["[quote]can you post the numbers?[/quote]", "[code]", *text, "[/code]"]
    (series,) = read_log(tmp_path, posted).series
    assert series.y.tolist() == [(1150 + n) * 1e6 for n in range(12)]
    assert np.diff(series.x).tolist() == [300] * 11


@pytest.mark.parametrize(
    "line",
    [
        "19:{n:02} saved weights {mb} MB",
        "19:{n:02} wrote {mb} MB, cpu {cpu}%",
        "19:{n:02} downloaded {mb} MB, cpu {cpu}%",
        "19:{n:02} packaged app.jar {mb} MB by build.py",
    ],
)
def test_the_size_of_what_a_process_writes_is_not(tmp_path: Path, line: str) -> None:
    text = [line.format(n=5 * n, mb=1150 + n, cpu=3 + n * 7 % 30) for n in range(12)]
    with pytest.raises(ReadError):
        read_log(tmp_path, text)


@pytest.mark.parametrize("unit", ["", " MiB", "MB", " GiB", " bytes"])
def test_sizes_below_lines_that_say_memory_are_read(tmp_path: Path, unit: str) -> None:
    lines = [
        "Memory of the worker",
        "It ran all night:",
        *(f"{811 + n}.5{unit}" for n in range(12)),
    ]
    (series,) = read_log(tmp_path, lines).series
    assert (series.y / series.y[0]).tolist() == [(811.5 + n) / 811.5 for n in range(12)]
    assert series.unit is (Unit.BYTES if unit else Unit.COUNT)


@pytest.mark.parametrize(
    ("above", "size"),
    [
        ("Uploads of today", "{} MiB"),
        ("Memory of the worker", "{} ms"),
        ("Memory of the worker", "{} of 900"),
    ],
)
def test_numbers_below_lines_of_something_else_are_refused(
    tmp_path: Path, above: str, size: str
) -> None:
    lines = [above, "It ran all night:", *(size.format(811 + n) for n in range(12))]
    with pytest.raises(ReadError):
        read_log(tmp_path, lines)

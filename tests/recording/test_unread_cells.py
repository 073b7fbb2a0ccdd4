"""Cells that cannot be read are quoted, in notes and in refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError


@pytest.mark.parametrize("cell", ["12 of ? MB", "800.0 MB; peak 2000 MB", "about a lot"])
def test_a_refusal_quotes_the_first_cell_that_cannot_be_read(tmp_path: Path, cell: str) -> None:
    with pytest.raises(ReadError) as refused:
        read_log(tmp_path, ["step,rss_mb", *(f"{n},{cell}" for n in range(20))])
    assert f'no cell of rss_mb is a number, the first is "{cell}" about line 2' in str(
        refused.value
    )


def test_a_refusal_tells_that_the_readings_cannot_be_memory(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="20 readings of rss_mb above 1 PB"):
        read_log(tmp_path, ["step,rss_mb", *(f"{n},{10**15 + n}" for n in range(20))])


def test_a_column_beside_others_that_cannot_be_read_is_quoted(tmp_path: Path) -> None:
    rows = (f"{n},{800 + n},{10**9} whatever x{n}" for n in range(20))
    notes = read_log(tmp_path, ["step,rss_mb,vram", *rows]).notes
    first = '"1000000000 whatever x0" about line 2'
    assert f"not read: no cell of vram is a number, the first is {first}" in notes


def test_cells_behind_the_last_name_do_not_shift_the_others(tmp_path: Path) -> None:
    rows = (f"{n},{800 + n},junk" for n in range(20))
    series = series_of(read_log(tmp_path, ["step,rss_mb", *rows]), "rss_bytes")
    assert series.y.tolist() == [(800 + n) * 1e6 for n in range(20)]
    rows = (f"row{n},{n},{800 + n}" for n in range(20))
    series = series_of(read_log(tmp_path, ["step,rss_mb", *rows]), "rss_bytes")
    assert series.y.tolist() == [(800 + n) * 1e6 for n in range(20)]


@pytest.mark.parametrize("line", ["{} MB", "{}.5 MiB", "{}GB"])
@pytest.mark.parametrize("name", ["log.txt", "log.csv"])
def test_one_number_with_a_unit_per_line_is_read(tmp_path: Path, line: str, name: str) -> None:
    lines = [line.format(800 + 20 * n) for n in range(20)]
    assert len(series_of(read_log(tmp_path, lines, name), "memory_bytes").y) == 20


@pytest.mark.parametrize("unit", ["MB", "GB"])
def test_a_unit_behind_a_number_counts_more_than_one_in_its_name(tmp_path: Path, unit: str) -> None:
    lines = [f"step {n} rss_mb=1,{241 + n} {unit} loss 0.5" for n in range(20)]
    series = series_of(read_log(tmp_path, lines), "rss_bytes")
    assert series.y[0] == 1241 * {"MB": 1e6, "GB": 1e9}[unit]

"""Tables too large to be read with all care at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memdiag.recording.read import read
from memdiag.recording.read_options import ReadOptions
from memdiag.recording.tables.assemble import assemble
from memdiag.recording.tables.infer_columns import plan
from memdiag.recording.tables.table import Table

ROWS = 20_000  # more than what is held of a file before its rows are read in place


def rows_of(path: Path, odd: str) -> str:
    """A large table with one odd line far behind the rows that types are inferred from."""
    lines = [f"{i},{5000 + i % 7}.5,{i * 2}.25" for i in range(ROWS)]
    lines[15_000] = odd
    path.write_text("step,rss_mb,vram_mb\n" + "\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("word", ["NA", "-", "N/A", "[N/A]", "nan", "", "none"])
def test_a_word_for_no_reading_far_down_is_a_missing_reading(tmp_path: Path, word: str) -> None:
    found = read(rows_of(tmp_path / "log.csv", f"15000,{word},30000.25")).series
    rss, vram = (series.y for series in found)
    assert len(rss) == ROWS
    assert np.flatnonzero(~np.isfinite(rss)).tolist() == [15_000]
    assert np.isfinite(vram).all()


def test_a_comment_far_down_is_no_row(tmp_path: Path) -> None:
    found = read(rows_of(tmp_path / "log.csv", "# resumed, from, a checkpoint")).series
    assert [len(series.y) for series in found] == [ROWS - 1] * 2
    assert all(np.isfinite(series.y).all() for series in found)


def test_a_table_of_figures_alone_reads_the_same_from_memory_and_in_place(tmp_path: Path) -> None:
    source = rows_of(tmp_path / "log.csv", "15000,5004.5,30000.25")
    in_place = read(source).series
    frame = pl.read_csv(source)
    names = tuple(frame.columns)
    table = Table(names=names, columns=tuple(frame.get_columns()), first_line=2)
    in_memory = assemble(table, plan(table, ReadOptions(), "log"), "log").series
    for one, other in zip(in_place, in_memory, strict=True):
        assert np.array_equal(one.y, other.y)
        assert np.array_equal(one.x, other.x)


def test_reading_a_table_changes_nothing_in_it() -> None:
    figures = pl.Series("rss_mb", np.arange(50.0) + 0.5)
    table = Table(
        names=("step", "rss_mb"),
        columns=(pl.Series("step", np.arange(50)), figures),
        first_line=None,
    )
    found = [assemble(table, plan(table, ReadOptions(), "t"), "t").series[0].y for _ in range(2)]
    assert np.array_equal(*found)
    assert figures.to_list() == (np.arange(50.0) + 0.5).tolist()

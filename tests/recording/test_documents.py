"""Documents with tables and logs in them: a reader's series, or a clear refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError
from memdiag.recording.read import read
from memdiag.recording.read_options import ReadOptions
from memdiag.values.measurements import AxisKind

DOCUMENTS = Path(__file__).parents[2] / "fixtures" / "documents"


def test_log_of_two_runs_is_read_as_a_restart() -> None:
    (series,) = read(str(DOCUMENTS / "no_memory_leak.md")).series
    assert series.axis.kind is AxisKind.STEP
    assert series.generation is not None
    last = series.generation == series.generation.max()
    assert series.x[last].tolist() == list(range(10, 250, 10))
    assert (series.y[last][0], series.y[last][-1]) == (5434e6, 17032e6)
    assert series.x[~last].tolist() == list(range(10, 80, 10))


def test_several_tables_of_series_are_to_be_chosen_from() -> None:
    with pytest.raises(ReadError) as caught:
        read(str(DOCUMENTS / "vram_leak_root_cause.md"))
    assert caught.value.line == 65
    assert "--table 1" in caught.value.remedy
    assert "--table 2" in caught.value.remedy


def test_chosen_table_gives_its_series_and_phases() -> None:
    source = str(DOCUMENTS / "vram_leak_root_cause.md")
    first = {s.metric: s for s in read(source, ReadOptions(table=1)).series}
    assert set(first) == {"baseline_vram_bytes", "hybrid_vram_bytes"}
    assert first["hybrid_vram_bytes"].y[-1] == 14136e6
    (second,) = read(source, ReadOptions(table=2)).series
    assert second.x.tolist() == [15, 20, 25, 30, 35, 40]
    assert second.phases is not None
    assert second.phases.names == ("Predict", "Correct")
    with pytest.raises(ReadError, match="no table 9"):
        read(source, ReadOptions(table=9))


@pytest.mark.parametrize(
    "name", ["vram_growth_analysis.md", "vram_management_summary.md", "ram_leak_fix.md"]
)
def test_prose_with_figures_is_no_series(name: str) -> None:
    with pytest.raises(ReadError):
        read(str(DOCUMENTS / name))


@pytest.mark.parametrize(
    ("header", "rule", "row"),
    [
        (" | VSZ MB | RSS MB", "---|---|---", "{n} | 9000 | {rss}"),
        ("| VSZ MB | RSS MB", "--|--|--", "{n} | 9000 | {rss}"),
        ("| VSZ MB | RSS MB |", "|--|--|--|", "| {n} | 9000 | {rss} |"),
        ("||VSZ MB|RSS MB|", "|--|--|--|", "|{n}|9000|{rss}|"),
        ("|step|VSZ MB|RSS MB", "|--|--|--", "|{n}|9000|{rss}"),
        ("| step | VSZ MB | RSS MB |", "---|---|---", "| {n} | 9000 | {rss} |"),
        ("step|VSZ MB|RSS MB", "--|--|--", "{n}||{rss}"),
        ("step|VSZ MB|RSS MB", "--|--|--", " |9000|{rss}"),
        ("|VSZ MB||RSS MB|", "|--|--|--|", "|9000||{rss}|"),
    ],
)
def test_cells_of_a_table_stay_below_their_names(
    tmp_path: Path, header: str, rule: str, row: str
) -> None:
    rows = [row.format(n=n, rss=812 + n % 3) for n in range(20)]
    recording = read_log(tmp_path, [header, rule, *rows])
    assert series_of(recording, "rss_bytes").y.tolist() == [(812 + n % 3) * 1e6 for n in range(20)]


@pytest.mark.parametrize("rule", ["|--|--|", "|--|--|--|--|"])
def test_rows_with_other_numbers_of_cells_than_the_header_are_refused(
    tmp_path: Path, rule: str
) -> None:
    rows = [f"| {n} | 9000 | {812 + n} | 1 |" for n in range(20)]
    with pytest.raises(ReadError, match="its header has 2 cells, and most of its rows have 4"):
        read_log(tmp_path, ["| step | RSS MB |", rule, *rows])


def test_a_row_with_more_cells_is_left_out_with_a_note(tmp_path: Path) -> None:
    rows = [f"| {n} | {812 + n} |" for n in range(20)]
    recording = read_log(tmp_path, ["| step | RSS MB |", "|--|--|", *rows, "| 20 | 1 | 832 |"])
    assert len(series_of(recording, "rss_bytes").y) == 20
    assert "1 row has more cells than the header: left out" in recording.notes

"""Documents with tables and logs in them: a reader's series, or a clear refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

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

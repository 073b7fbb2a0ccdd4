"""Documents as people write them: the verdict that a reader would give, or what to choose from."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdiag.analysis.diagnose import diagnose
from memdiag.errors import ReadError
from memdiag.recording.read import read
from memdiag.recording.read_options import ReadOptions
from memdiag.values.findings import Finding
from memdiag.values.verdict import Verdict

DOCUMENTS = Path(__file__).parents[1] / "fixtures" / "documents"


def judged(name: str, table: int | None = None) -> dict[str, Finding]:
    found = diagnose(read(str(DOCUMENTS / name), ReadOptions(table=table)))
    return {series.metric: series for series in found.series}


def test_log_in_a_document_is_a_warmup_after_a_restart() -> None:
    (found,) = judged("no_memory_leak.md").values()
    assert found.verdict is Verdict.WARMUP
    assert found.plateau is not None
    assert 80 <= found.plateau.since_x.value <= 100
    assert 17.0e9 <= found.plateau.low_value < found.plateau.high_value <= 17.7e9


def test_table_of_both_trainers_tells_the_leak_from_the_baseline() -> None:
    found = judged("vram_leak_root_cause.md", table=1)
    assert found["hybrid_vram_bytes"].verdict is Verdict.LEAK
    assert found["baseline_vram_bytes"].verdict in {Verdict.WARMUP, Verdict.STABLE}


def test_six_samples_of_a_climb_are_no_verdict() -> None:
    (found,) = judged("vram_leak_root_cause.md", table=2).values()
    assert found.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "name", ["vram_growth_analysis.md", "vram_management_summary.md", "ram_leak_fix.md"]
)
def test_tables_of_something_else_are_named_with_the_option_that_chooses_them(name: str) -> None:
    with pytest.raises(ReadError, match="nor in its tables") as caught:
        read(str(DOCUMENTS / name))
    assert "--table 1 (line " in caught.value.remedy

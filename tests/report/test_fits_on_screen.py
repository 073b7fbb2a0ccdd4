"""The report on one recording fits on a terminal of 80x24: real recordings, and made ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from report import diagnoses
from report.draw_screens import text

from memdiag.analysis.diagnose import diagnose
from memdiag.recording.read import read
from memdiag.report.text.screen import Detail
from memdiag.values.findings import Diagnosis, EvidenceKind, RecordingFinding
from memdiag.values.measurements import Cause, Ending
from memdiag.values.verdict import Verdict

FIXTURES = Path(__file__).parents[2] / "fixtures"
MOST = {Verdict.STABLE: 8, Verdict.WARMUP: 14, Verdict.LEAK: 24, Verdict.INCONCLUSIVE: 16}
RECORDINGS = [
    *sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("runs/*.csv")),
    *sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("corpus/own_*_steps.csv")),
]
ENDINGS = {
    "failed": Ending(code=1),
    "killed": Ending(signal=9),
    "interrupted": Ending(signal=2),
    "out of memory": Ending(
        signal=9,
        why="killed by the kernel's OOM killer",
        cause=Cause.OOM_KILLER,
        at_bytes=3_980_000_000,
        limit_bytes=4_000_000_000,
        detail="RuntimeError: not enough memory: you tried to allocate 400000000 bytes.",
    ),
    "stopped": Ending(signal=15, why="ended by memdiag after --duration 8 s"),
}


@cache
def found(name: str) -> RecordingFinding:
    recording = diagnose(read(str(FIXTURES / name)))
    return replace(recording, source=f".memdiag/runs/20261123-084704-train-21871/{name}")


def lines(finding: RecordingFinding, width: int = 80) -> list[str]:
    """As a terminal shows them: it wraps the last one."""
    shown = text(Diagnosis(recordings=(finding,)), width=width).rstrip("\n").split("\n")
    last = shown.pop()
    return [*shown, *(last[at : at + width] for at in range(0, len(last), width))]


@pytest.mark.parametrize("name", RECORDINGS)
def test_report_has_no_more_lines_than_its_verdict_needs(name: str) -> None:
    finding = found(name)
    shown = lines(finding)
    # (Live objects that accumulate beside stable memory need advice.)
    accumulates = any(one.kind is EvidenceKind.COUNT_GROWS for one in finding.evidence)
    verdict = Verdict.INCONCLUSIVE if accumulates else finding.verdict
    assert len(shown) <= MOST[verdict], "\n".join(shown)
    assert shown[0].startswith("── memdiag ──")
    assert shown[1].split()[0] == finding.verdict.name
    last = text(Diagnosis(recordings=(finding,)), width=80).rstrip("\n").split("\n")[-1]
    assert last.startswith(f"memdiag: {finding.verdict.name}")
    assert last.endswith(finding.source)


@pytest.mark.parametrize("ended", ENDINGS)
@pytest.mark.parametrize("name", RECORDINGS[:6])
def test_how_a_run_ended_comes_first(name: str, ended: str) -> None:
    finding = replace(found(name), ending=ENDINGS[ended])
    shown = lines(finding)
    assert len(shown) <= 24, "\n".join(shown)
    assert shown[1].split("   ")[0].strip() == ended.upper()
    assert ended in text(Diagnosis(recordings=(finding,)), width=80).split("\n")[-2]
    assert any(line.split()[:1] == [finding.verdict.name] for line in shown[2:5])


@pytest.mark.parametrize("name", sorted(set(diagnoses.SCREENS) - {"failure", "many_recordings"}))
def test_made_reports_fit_too(name: str) -> None:
    for finding in diagnoses.SCREENS[name]().recordings:
        assert len(lines(finding)) <= 24


def test_quiet_is_the_last_line() -> None:
    one = Diagnosis(recordings=(found(RECORDINGS[0]),))
    whole = text(one, width=80).rstrip("\n").split("\n")
    assert text(one, width=80, detail=Detail.VERDICT) == f"{whole[-1]}\n"

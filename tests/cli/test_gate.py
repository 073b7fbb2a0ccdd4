"""The gate on the command line: budgets, what fails, and the outputs for CI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memdiag.cli import app
from memdiag.cli.options.exit_codes import (
    DEFAULT_FAIL_ON,
    FailOn,
    Inconclusive,
    exit_code,
    failing_outcomes,
)
from memdiag.values.findings import Diagnosis, RecordingFinding, Standing
from memdiag.values.verdict import Verdict

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
STABLE, LEAK, INCONCLUSIVE = (
    str(RUNS / f"{n}.csv") for n in ("burn_baseline", "burn_hybrid", "vision_run1")
)
WARMUP = str(RUNS / "vision_run2.csv")
CI = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Ended]


@pytest.fixture
def memdiag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """The command line in an empty directory, in this process: it is called often here."""

    def command(*arguments: str, **environ: str) -> Ended:
        monkeypatch.chdir(tmp_path)
        for name in CI:
            monkeypatch.delenv(name, raising=False)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["memdiag", *arguments])
        code = app.main()
        return Ended(returncode=code, stdout=(said := capfd.readouterr()).out, stderr=said.err)

    return command


def launched(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """`memdiag run`, which takes the process's signals, in one of its own."""
    return subprocess.run(
        [sys.executable, "-m", "memdiag", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k not in CI} | environ,
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((STABLE, "--max-peak", "5GB"), 0),
        ((STABLE, "--max-peak", "4GB"), 1),
        ((STABLE, "--max-growth", "1GB/min"), 3),
        ((STABLE, "--max-growth", "1GB/min", "--inconclusive", "pass"), 0),
        ((STABLE, "--max-peak", "4GB", "--max-growth", "1GB/min"), 1),
        ((STABLE, "--max-peak", "4GB", "--fail-on", "leak"), 0),
        ((STABLE, "--max-growth", "1GB/min", "--fail-on", "budget"), 3),
        ((LEAK, "--fail-on", "budget", "--max-peak", "20GB"), 0),
        ((INCONCLUSIVE, "--fail-on", "leak"), 0),
        ((INCONCLUSIVE, "--fail-on", "leak,inconclusive"), 3),
        ((WARMUP, "--fail-on", "warmup"), 1),
        ((LEAK, "--fail-on", "never"), 0),
        ((WARMUP, "--max-variation", "700MB", "--after-step", "90"), 0),
        ((WARMUP, "--max-variation", "600MB", "--after-step", "90"), 1),
        ((WARMUP, "--max-tensors-growth", "5000/1000steps"), 0),
        ((STABLE, "--max-peak", "nonsense"), 2),
    ],
)
def test_exit_code_is_the_documented_one(
    arguments: tuple[str, ...], code: int, memdiag: Command
) -> None:
    assert memdiag("analyze", *arguments).returncode == code


@pytest.mark.parametrize("fail_on", [*FailOn, None])
@pytest.mark.parametrize("inconclusive", Inconclusive)
@pytest.mark.parametrize("verdict", Verdict)
def test_inconclusive_never_has_the_code_of_a_leak(
    fail_on: FailOn | None, inconclusive: Inconclusive, verdict: Verdict
) -> None:
    found = RecordingFinding(
        source="a",
        verdict=verdict,
        confidence=0.9,
        series=(None,),
        decided_by=None,  # type: ignore[arg-type]
    )
    failing = failing_outcomes(DEFAULT_FAIL_ON if fail_on is None else {fail_on}, inconclusive)
    code = exit_code(Diagnosis(recordings=(found,)), failing)
    if verdict is Verdict.INCONCLUSIVE:
        assert code in {0, 3}
    if verdict is Verdict.STABLE:
        assert code == 0


def test_broken_budget_is_reported_with_its_value(memdiag: Command) -> None:
    ended = memdiag("analyze", STABLE, "--max-peak", "4GB")
    assert "BROKEN --max-peak 4GB: VRAM peaked at 4.18 GB, 184 MB too much." in ended.stdout
    many = memdiag("analyze", str(RUNS), "--max-peak", "4GB")
    assert many.stdout.count("BROKEN --max-peak 4GB") == 7


def test_json_contains_each_budget_with_value_and_limit(memdiag: Command) -> None:
    ended = memdiag("analyze", "--json", WARMUP, "--max-growth", "1GB/50steps")
    [held] = json.loads(ended.stdout)["recordings"][0]["budgets"]
    assert held["budget"]["text"] == "--max-growth 1GB/50steps"
    assert (held["standing"], held["unit"], held["budget"]["amount"]) == ("kept", "bytes", 1e9)
    assert held["budget"]["per"] == {"length": 50, "axis": "step"}
    assert held["measured"]["high"] < 1e9


def test_project_file_and_environment_gate_run(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.memdiag]\nmax-peak = "1MB"\n')
    command = ["run", "--quiet", "--duration", "5", "--", sys.executable, "-c", SHORT]
    broken = launched(*command, cwd=tmp_path)
    assert broken.returncode == 1
    assert "BROKEN max-peak in pyproject.toml 1MB" in broken.stderr
    wide = launched(*command, cwd=tmp_path, MEMDIAG_MAX_PEAK="1TB", MEMDIAG_FAIL_ON="budget")
    assert wide.returncode == 0
    assert "BROKEN" not in wide.stderr


# Long enough for some samples.
SHORT = "import time; time.sleep(0.6)"


def test_commands_own_failure_decides_unless_told_otherwise(tmp_path: Path) -> None:
    failing = [sys.executable, "-c", SHORT + "; raise SystemExit(7)"]
    options = ["run", "--quiet", "--max-peak", "1MB"]
    assert launched(*options, "--", *failing, cwd=tmp_path).returncode == 7
    ended = launched(*options, "--exit-code", "verdict", "--", *failing, cwd=tmp_path)
    assert ended.returncode == 1


def test_junit_has_a_case_for_each_series_and_budget(memdiag: Command, tmp_path: Path) -> None:
    arguments = ["--max-peak", "16GB", "--max-growth", "1GB/50steps", "--junitxml", "out.xml"]
    memdiag("analyze", WARMUP, *arguments)
    suites = ET.parse(tmp_path / "out.xml").getroot()
    cases = {case.get("name"): case for case in suites.iter("testcase")}
    assert list(cases) == [
        "rss_bytes",
        "tensors",
        "tensors_cpu",
        "tensors_gpu",
        "--max-growth 1GB/50steps (rss_bytes)",
        "--max-peak 16GB (rss_bytes)",
    ]
    failing = [name for name, case in cases.items() if case.find("failure") is not None]
    assert failing == ["--max-peak 16GB (rss_bytes)"]


def test_summary_is_appended_where_github_offers_it(memdiag: Command, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    memdiag("analyze", LEAK, "--markdown", "own.md", GITHUB_STEP_SUMMARY=str(summary))
    own = (tmp_path / "own.md").read_text()
    assert summary.read_text() == f"before\n{own}\n"
    assert own.startswith("### ❌ LEAK: ")


def test_annotations_come_under_github_actions_only(memdiag: Command) -> None:
    arguments = ["analyze", "--json", LEAK, INCONCLUSIVE, "--inconclusive", "pass"]
    outside = memdiag(*arguments)
    assert "::" not in outside.stderr
    inside = memdiag(*arguments, GITHUB_ACTIONS="true")
    levels = [line.split(" ")[0] for line in inside.stderr.splitlines()]
    assert levels == ["::error", "::warning"]
    json.loads(inside.stdout)


def test_summary_that_cannot_be_written_does_not_fail_the_job(
    memdiag: Command, tmp_path: Path
) -> None:
    ended = memdiag("analyze", STABLE, GITHUB_STEP_SUMMARY=str(tmp_path / "no" / "x"))
    assert ended.returncode == 0
    assert "step summary could not be written" in ended.stderr


def test_report_that_cannot_be_written_is_an_error(memdiag: Command) -> None:
    ended = memdiag("analyze", STABLE, "--junitxml", "no/such/place.xml")
    assert ended.returncode == 2
    assert "directory does not exist: no/such" in ended.stderr


def test_standings_are_all_known_to_the_report() -> None:
    from memdiag.report.sections.budgets import STANDINGS

    assert set(STANDINGS) == set(Standing)

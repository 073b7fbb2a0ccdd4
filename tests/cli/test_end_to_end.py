"""End to end: real programs under `memdiag run`, their verdicts and exit codes.

All programs are started at once, for most of what they do is wait; each test then waits for its
own.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "programs"
LONGEST_S = 280

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A program under `memdiag run`."""

    process: subprocess.Popen[str]
    recording: Path
    findings: Path

    def ended(self) -> tuple[int, str]:
        """Its exit code and everything it and memdiag said on stderr."""
        _, said = self.process.communicate(timeout=LONGEST_S)
        return self.process.returncode, said

    def verdict(self) -> str:
        found = json.loads(self.findings.read_text()) if self.findings.exists() else {}
        return str(found.get("verdict", "none"))


def start(program: str, where: Path, *options: str) -> Run:
    name = Path(program).stem
    recording, findings = where / f"{name}.csv", where / f"{name}.json"
    command = [sys.executable, "-m", "memdiag", "run", "--output", str(recording)]
    command += ["--json-file", str(findings), *options]
    command += ["--", sys.executable, str(PROGRAMS / program)]
    process = subprocess.Popen(
        command,
        cwd=where,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Run(process=process, recording=recording, findings=findings)


PLAIN = ("leak.py", "plateau.py", "steady.py", "exits_7.py", "kills_itself.py", "dies_at_once.py")
TORCH = ("torch_leak.py", "torch_warmup.py", "torch_healthy.py")


def all_started(programs: tuple[str, ...], where: Path) -> Iterator[dict[str, Run]]:
    runs = {program: start(program, where) for program in programs}
    yield runs
    for run in runs.values():
        with run.process:
            if run.process.poll() is None:
                run.process.terminate()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    yield from all_started(PLAIN, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    yield from all_started(TORCH, tmp_path_factory.mktemp("torch"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "code", "verdicts"),
    [
        ("leak.py", 1, {"leak"}),
        ("plateau.py", 0, {"warmup"}),
        ("steady.py", 0, {"stable", "warmup"}),
        ("kills_itself.py", 137, {"leak", "inconclusive"}),
    ],
)
def test_a_program_gets_its_verdict_and_exit_code(
    plain: dict[str, Run], program: str, code: int, verdicts: set[str]
) -> None:
    returned, said = plain[program].ended()
    verdict = plain[program].verdict()
    assert (returned, verdict) == (code, verdict if verdict in verdicts else verdicts), said
    assert verdict.upper() in said


def test_a_failing_command_decides_and_its_verdict_is_printed(plain: dict[str, Run]) -> None:
    returned, said = plain["exits_7.py"].ended()
    assert returned == 7, said
    assert plain["exits_7.py"].verdict().upper() in said


def test_a_command_that_dies_at_once_has_a_recording_and_a_verdict(plain: dict[str, Run]) -> None:
    _, said = plain["dies_at_once.py"].ended()
    assert plain["dies_at_once.py"].recording.exists()
    assert plain["dies_at_once.py"].verdict() == "inconclusive"
    assert "INCONCLUSIVE" in said


@pytest.mark.slow
def test_a_recording_gets_the_same_verdict_again(plain: dict[str, Run]) -> None:
    plain["leak.py"].process.wait(timeout=LONGEST_S)
    again = subprocess.run(
        [sys.executable, "-m", "memdiag", "analyze", "--json", str(plain["leak.py"].recording)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1, again.stderr
    then = json.loads(plain["leak.py"].findings.read_text())
    assert json.loads(again.stdout)["recordings"][0]["series"] == then["recordings"][0]["series"]


@pytest.mark.slow
@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize(
    ("program", "code", "verdicts"),
    [
        ("torch_leak.py", 1, {"leak"}),
        ("torch_warmup.py", 0, {"warmup"}),
        ("torch_healthy.py", 0, {"stable", "warmup"}),
    ],
)
def test_a_training_gets_its_verdict_and_exit_code(
    trainings: dict[str, Run], program: str, code: int, verdicts: set[str]
) -> None:
    returned, said = trainings[program].ended()
    verdict = trainings[program].verdict()
    assert (returned, verdict) == (code, verdict if verdict in verdicts else verdicts), said


def test_missing_command_is_127(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "memdiag", "run", "--", str(tmp_path / "nosuch")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 127
    assert "nosuch" in ended.stderr
    assert list(tmp_path.glob(".memdiag/runs/*")) == []

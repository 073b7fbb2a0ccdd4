"""The GitHub action and the GitLab job of docs/ci.md: their shell steps are run as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
DOCS = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
RUNS = ROOT / "fixtures" / "runs"
# A short job that holds some memory and ends well.
JOB = "import time\nheld = bytearray(10_000_000)\ntime.sleep(0.5)\nprint('trained')\n"


def shell_steps(yaml: str) -> list[str]:
    """The texts of all `run:`, a block or a line each."""
    blocks = re.findall(r"^( +)run: \|\n((?:\1 +.*\n|\n)+)", yaml, re.M)
    lines = re.findall(r"^ +run: (?!\|)(.+)$", yaml, re.M)
    return lines + [textwrap.dedent(text) for _, text in blocks]


def snippet(name: str) -> str:
    found = re.search(rf"<!-- snippet: {name} -->\n```yaml\n(.*?)```", DOCS, re.S)
    assert found is not None
    return found[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a step ended and what it told the workflow."""

    code: int
    outputs: dict[str, str]
    stdout: str
    stderr: str


Act = Callable[..., Ended]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """PATH on which `python` is the one that runs the tests."""
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    python = bin_directory / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return f"{bin_directory}:{os.environ['PATH']}"


@pytest.fixture
def act(tmp_path: Path, path: str) -> Act:
    """Runs the action's step with these inputs, as a runner does."""

    def run_step(**inputs: str) -> Ended:
        outputs = tmp_path / "outputs"
        outputs.write_text("")
        environ = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
        defaults = {"INPUT_COMMAND": "", "INPUT_FILES": "", "INPUT_OPTIONS": ""}
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", shell_steps(ACTION)[-1]],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ
            | defaults
            | {"INPUT_OUTPUT": "memdiag-report"}
            | environ
            | {
                "PATH": path,
                "GITHUB_OUTPUT": str(outputs),
                "GITHUB_ACTIONS": "true",
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            },
        )
        told = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        return Ended(code=ended.returncode, outputs=told, stdout=ended.stdout, stderr=ended.stderr)

    return run_step


def test_no_input_is_pasted_into_a_script() -> None:
    assert len(shell_steps(ACTION)) == 2
    for script in shell_steps(ACTION):
        assert "${{" not in script


def test_every_input_reaches_its_step_by_the_environment_or_an_action() -> None:
    inputs = re.search(r"^inputs:\n(.*?)^\w", ACTION, re.S | re.M)
    assert inputs is not None
    for name in re.findall(r"^  (\w+):", inputs[1], re.M):
        value = f"${{{{ inputs.{name} }}}}"
        assert f"INPUT_{name.upper()}: {value}" in ACTION or f"name: {value}" in ACTION


def test_install_step_hands_pip_what_was_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {log}\n')
    python.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "INPUT_INSTALL": "memdiag==9; x"}
    subprocess.run(["bash", "-ec", shell_steps(ACTION)[0]], check=True, env=os.environ | environ)
    assert log.read_text().splitlines()[-1] == "memdiag==9; x"


def test_action_runs_a_command_and_reports(act: Act, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    ended = act(command="python job.py\necho done", options='--max-peak "1 TB" --fail-on budget')
    assert ended.code == 0, ended.stderr
    assert ended.stdout.splitlines() == ["trained", "done"]
    report = json.loads((tmp_path / ended.outputs["report"]).read_text())
    assert ended.outputs["verdict"] == report["verdict"]
    assert ended.outputs["exit-code"] == "0"
    assert report["recordings"][0]["budgets"][0]["budget"]["text"] == "--max-peak 1 TB"
    ET.parse(tmp_path / "memdiag-report" / "memdiag.xml")
    assert (tmp_path / "summary.md").read_text().startswith("### ")


def test_action_fails_on_a_broken_budget_and_says_so(act: Act, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    ended = act(command="python job.py", options="--max-peak 1MB --fail-on budget")
    assert (ended.code, ended.outputs["exit-code"]) == (1, "1")
    assert "::error title=memdiag%3A budget broken::" in ended.stderr


def test_action_passes_a_failing_commands_status_on(act: Act) -> None:
    ended = act(command="sleep 0.3; false; echo not reached", options="--fail-on never")
    assert ended.code == 1
    assert "not reached" not in ended.stdout


def test_action_judges_files_one_a_line(act: Act, tmp_path: Path) -> None:
    spaced = tmp_path / "a log.csv"
    spaced.write_bytes((RUNS / "burn_hybrid.csv").read_bytes())
    ended = act(files=f"{RUNS}/burn_baseline.csv\na log.csv\n")
    assert (ended.code, ended.outputs["verdict"]) == (1, "leak")
    calm = act(files=f"{RUNS}/burn_baseline.csv")
    assert (calm.code, calm.outputs["exit-code"]) == (0, "0")


def test_action_refuses_a_command_and_files_together(act: Act) -> None:
    ended = act(command="true", files="x.csv")
    assert ended.code == 2
    assert "::error" in ended.stdout


def test_action_tells_of_a_log_that_cannot_be_read(act: Act) -> None:
    ended = act(files="missing.csv")
    assert (ended.code, ended.outputs["exit-code"]) == (2, "2")


def test_github_snippet_gives_only_inputs_that_there_are() -> None:
    used = re.findall(r"^    (\w+): ", snippet("github"), re.M)
    assert used
    for name in used:
        assert f"\n  {name}:\n    description:" in ACTION


def test_gitlab_job_runs_as_it_stands(tmp_path: Path, path: str) -> None:
    job = snippet("gitlab")
    script = re.search(r"  script:\n(.*?)  artifacts:", job, re.S)
    assert script is not None
    commands = [" ".join(part.split()) for part in re.split(r"^    - ", script[1], flags=re.M)[1:]]
    commands = [command.removeprefix(">- ") for command in commands]
    assert commands[0] == "python -m pip install memdiag"
    (tmp_path / "train.py").write_text(JOB)
    for command in commands[1:]:
        ended = subprocess.run(
            ["sh", "-ec", command],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
        )
    # No steps were tagged: the budget per step is a doubt, and says so.
    assert ended.returncode == 3, ended.stderr
    assert "without steps" in ended.stderr
    assert ended.stdout == "trained\n"
    for name in re.findall(r"memdiag-report/[\w.]+", job):
        assert (tmp_path / name).exists()

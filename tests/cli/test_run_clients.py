"""Programs that pass a command on to a process elsewhere: `docker`, `ssh`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import MEMDIAG

WORK = "import time; kept = [bytearray(1 << 20) for _ in range(50)]; time.sleep(1.5)"


@pytest.fixture
def bin_with_ssh(tmp_path: Path) -> Path:
    """A folder for PATH with an `ssh` that waits for its host."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text("#!/bin/sh\necho from the host\nsleep 0.5\nexit 3\n")
    (folder / "ssh").chmod(0o755)
    return folder


def run(path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        [*MEMDIAG, "run", "-o", "r.csv", "--json-file", "r.json", "--interval", "50ms", *command],
        env=environment,
        cwd=path.parent,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_what_runs_elsewhere_is_not_measured(bin_with_ssh: Path) -> None:
    ended = run(bin_with_ssh, "--exit-code", "verdict", "--", "ssh", "HOST", "train")
    assert ended.stdout == "from the host\n"
    assert ended.returncode == 4, ended.stderr
    assert "ssh passes its command on" in ended.stderr
    assert "ssh HOST memdiag run -- COMMAND" in " ".join(ended.stderr.split())
    document = json.loads((bin_with_ssh.parent / "r.json").read_text())
    assert document["verdict"] == "inconclusive"
    assert document["recordings"][0]["series"] == []


def test_a_shell_around_it_is_no_stable_job(bin_with_ssh: Path) -> None:
    ended = run(bin_with_ssh, "--exit-code", "verdict", "--", "sh", "-c", "ssh HOST | cat; true")
    assert ended.returncode in {3, 4}, ended.stderr  # the shell may be seen alone
    assert "ssh passes its command on" in " ".join(ended.stderr.split())


def test_the_status_of_the_command_counts_as_ever(bin_with_ssh: Path) -> None:
    assert run(bin_with_ssh, "--", "ssh", "HOST").returncode == 3


def test_a_program_beside_it_is_measured(bin_with_ssh: Path) -> None:
    script = f"ssh HOST & {sys.executable} -c '{WORK}'; wait"
    run(bin_with_ssh, "--", "sh", "-c", script)
    document = json.loads((bin_with_ssh.parent / "r.json").read_text())
    series = document["recordings"][0]["series"]
    assert max(one["peak_value"] for one in series if one["metric"] == "rss_bytes") > 50e6
    assert not any(one["process"].startswith("ssh") for one in series)

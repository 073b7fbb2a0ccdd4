"""`--to`: real jobs, with destinations that work and that fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest
from terminals import MEMDIAG, PATIENCE_S

import memdiag

pytest.importorskip("prometheus_client")
pytest.importorskip("tensorboard")
# Grows by 1 MB at each step, and waits for a line before the last one.
PROGRAM = """\
import sys, time, memdiag
held = []
for step in range(40):
    held.append(b"1" * 1000000)
    memdiag.step(step)
    time.sleep(0.02)
print("ready", flush=True)
sys.stdin.readline()
sys.exit(7)
"""


def started(*options: str, directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MEMDIAG, "run", "-o", "r.csv", *options, "--", sys.executable, "-c", PROGRAM],
        cwd=directory,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ended(job: subprocess.Popen[str]) -> str:
    """What it prints on stderr once it was allowed to end."""
    _, said = job.communicate("\n", timeout=PATIENCE_S)
    return said


def helpers(job: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that send, once the job has done its steps."""
    assert job.stdout is not None
    assert job.stdout.readline() == "ready\n"
    return [one for one in psutil.Process(job.pid).children() if one.name() == "memdiag-to"]


def test_a_run_is_in_prometheus_while_it_runs_and_in_tensorboard_after_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.memdiag]\nto = ["prometheus:0", "tensorboard:logs"]\n'
    )
    job = started(directory=tmp_path)
    sending = helpers(job)
    assert len(sending) == 2
    assert job.stderr is not None
    url = ""
    while not url:
        found = re.search(r"--to prometheus: (http://127.0.0.1:\d+/metrics)", job.stderr.readline())
        url = found[1] if found is not None else ""
    text = ""
    while "memdiag_step" not in text:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            text = answer.read().decode()
    assert 'memdiag_rss_bytes{process="tree"' in text
    assert 'memdiag_limit_bytes{limit="' in text
    said = ended(job)
    assert job.returncode == 7
    assert said.count("--to") <= 1  # where TensorBoard's directory is
    assert not any(one.is_running() for one in sending)
    (events,) = (tmp_path / "logs").glob("*/events.*")
    assert (events.parent / "memdiag.html").read_text().startswith("<!DOCTYPE html>")
    recorded, read = memdiag.analyze(str(tmp_path / "r.csv")), memdiag.analyze(str(events))
    assert {one.process for one in recorded.series} <= {"main", "tree"}
    for one in (recorded, read):
        assert one.deciding is not None
        assert one.deciding.last_x > 30  # the last steps may be set aside


def test_destinations_that_fail_or_die_are_said_once_and_change_nothing(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    job = started(
        "-q", "--to", "prometheus:gone/m.prom", "--to", "tensorboard:logs", directory=tmp_path
    )
    sending = helpers(job)
    (board,) = (one for one in sending if any(f.path.endswith(".0") for f in one.open_files()))
    board.kill()
    for path in gone.iterdir():
        path.unlink()
    gone.rmdir()
    said = ended(job)
    assert job.returncode == 7
    assert said.count("\n") == 3
    assert "--to prometheus: failed, and the run goes on: No such file or directory" in said
    assert "--to tensorboard: its process has ended before it had sent everything" in said


def test_a_watched_process_is_sent_too(tmp_path: Path) -> None:
    target = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        found = subprocess.run(
            [
                *MEMDIAG,
                "watch",
                "-q",
                "--duration",
                "1s",
                "--to",
                "prometheus:m.prom",
                str(target.pid),
            ],
            cwd=tmp_path,
            text=True,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
            env={**os.environ, "MEMDIAG_DIR": str(tmp_path)},
        )
    finally:
        target.communicate()
    assert found.returncode in (0, 3), found.stderr
    text = (tmp_path / "m.prom").read_text()
    assert 'memdiag_rss_bytes{process="tree"' in text
    assert f'pid="{target.pid}"' in text

"""`memdiag watch --all`: several trainings at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commandline import called
from terminals import MEMDIAG, PATIENCE_S, Terminal

# Grows by 200 kB at each of its steps until its input is closed.
LEAK = """\
import memdiag, select, sys
held, step = [], 0
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0.01)[0]:
    held.append(b"1" * 200_000)
    memdiag.step(step)
    step += 1
"""
WIDE = {"COLUMNS": "160", "LINES": "60"}
WAIT = "import sys; print('ready', flush=True); sys.stdin.readline()"


@contextmanager
def running(directory: Path, *programs: str) -> Iterator[list[int]]:
    """The pids of `memdiag run` with each of the programs, which are ready."""
    jobs = []
    try:
        for number, program in enumerate(programs):
            command = [*MEMDIAG, "run", "-q", "-o", f"{number}.csv", "--", sys.executable, "-c"]
            job = subprocess.Popen(
                [*command, program],
                cwd=directory,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            jobs.append(job)
        for job in jobs:
            assert job.stdout is not None
            assert job.stdout.readline() == "ready\n"
        yield [job.pid for job in jobs]
    finally:
        for job in jobs:
            job.communicate("\n", timeout=PATIENCE_S)


def watched(*options: str) -> tuple[int, dict[str, Any]]:
    ended = subprocess.run(
        [*MEMDIAG, "watch", "--all", "--json", "--interval", "0.1", *options],
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.stderr == ""
    found: dict[str, Any] = json.loads(ended.stdout)
    return ended.returncode, found


def parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def test_each_training_has_an_entry_and_memdiag_has_none(tmp_path: Path) -> None:
    with running(tmp_path, WAIT, WAIT) as jobs:
        _, found = watched("--duration", "1s")
        _, others = watched("--duration", "0.2s", "--user", "54321")
        ours = [one for one in found["trainings"] if parent(one["pid"]) in jobs]
    assert others["trainings"] == []
    assert found["schema_version"] == 1
    assert len(ours) == 2
    assert not {one["pid"] for one in found["trainings"]} & set(jobs)
    for one in ours:
        assert one["verdict"] in {"inconclusive", "stable"}
        assert one["rss_bytes"] > 1_000_000
        assert one["processes"] == 1
        assert not one["has_ended"]
        assert sys.executable in one["command"]
    (host,) = (one for one in found["memory"] if one["name"] == "host RAM")
    assert 0 < host["used_bytes"] < host["total_bytes"]


@pytest.mark.slow
def test_a_leak_is_shown_while_it_grows_and_stays_when_it_has_ended(tmp_path: Path) -> None:
    command = [*MEMDIAG, "watch", "--all", "--interval", "0.2", "--user", str(os.getuid())]
    with Terminal(command, directory=tmp_path, environ=WIDE) as terminal:
        with running(tmp_path, LEAK):
            terminal.until(r"LEAK[^\n]*\+20\d KB/step")
        terminal.until(r"ended \(LEAK\)[^\n]*memdiag.step")
        os.kill(terminal.process.pid, signal.SIGINT)
        assert terminal.finish() == 1
    # The last table stays when the screen of the terminal is left.
    last = terminal.screen.decode().rpartition("\x1b[?1049l")[2]
    assert "ended (LEAK)" in last
    assert "host RAM" in last


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--all", "4711"), "--all and a PID exclude each other"),
        (("--all", "--attach"), "--attach is for one process, not for --all"),
        (("--all", "--html", "x.html"), "--html is for one process, not for --all"),
        (("--user", "no-such-user"), "unknown user 'no-such-user' (--user)"),
    ],
)
def test_what_does_not_go_together_is_an_error(options: tuple[str, ...], message: str) -> None:
    found = called("watch", *options)
    assert found.returncode == 2
    assert found.stderr.startswith(f"memdiag: error: {message}\n")

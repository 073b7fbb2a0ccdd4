"""Whatever file is at a path that memdiag opens by name, memdiag never waits for it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import called
from terminals import MEMDIAG

LOG = "step,rss_mb\n" + "".join(f"{n},{1000 + n % 3}\n" for n in range(60))
# A run takes a second or two on a busy machine; one that waits for a FIFO takes forever.
PATIENCE_S = 30
STALE = "4194305-1-00000000"


def _socket(path: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)


KINDS: dict[str, Callable[[Path], object]] = {
    "FIFO": os.mkfifo,
    "socket": _socket,
    "directory": Path.mkdir,
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "huge file": _huge,
}


@pytest.fixture(params=sorted(KINDS))
def plant(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    return KINDS[request.param]


def test_command_runs_whatever_files_are_in_the_way(plant, tmp_path: Path) -> None:
    channels = tmp_path / f"memdiag-{os.getuid()}"
    (channels / STALE).mkdir(mode=0o700, parents=True)
    channels.chmod(0o700)
    for path in (
        channels / STALE / "1-1.ring",
        channels / "4194305-2-00000000",
        channels / "x",
        tmp_path / "summary",
    ):
        plant(path)
    if plant is not _huge:  # which is an error: it might hold what the gate was to be
        plant(tmp_path / "pyproject.toml")
    places = {"TMPDIR": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    done = subprocess.run(
        [*MEMDIAG, "run", "-q", "-o", "run.csv", "--", "sh", "-c", "echo out; exit 9"],
        cwd=tmp_path,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (9, "out\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_place_for_channels_may_be_taken(plant, tmp_path: Path) -> None:
    plant(tmp_path / f"memdiag-{os.getuid()}")
    done = subprocess.run(
        [*MEMDIAG, "run", "-q", "-o", "run.csv", "--", "sh", "-c", "echo out; exit 9"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (9, "out\n"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("taken", [".memdiag", ".memdiag/runs"])
def test_place_for_runs_may_be_taken(plant, taken: str, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    if taken != ".memdiag":
        (tmp_path / ".memdiag").mkdir()
    plant(tmp_path / taken)
    done = subprocess.run(
        [*MEMDIAG, "run", "-q", "--", "sh", "-c", "echo out; exit 9"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (9, "out\n"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.timeout(PATIENCE_S)
def test_list_and_clean_wait_for_nothing(plant, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = tmp_path / ".memdiag/runs/20260102-030405-x-1"
    run.mkdir(parents=True)
    for name in ("recording.csv", "recording.meta.json", "report.json"):
        plant(run / name)
    for command in ("list", "clean --keep 0 --yes"):
        done = called(*command.split())
        assert done.returncode == 0, done.stderr
    assert len(list(run.iterdir())) == 3
    for command in ("report", "analyze last"):
        done = called(*command.split())
        assert done.returncode == 2
        assert "recording.csv" in done.stderr + done.stdout


@pytest.mark.timeout(PATIENCE_S)
def test_analyze_waits_for_nothing_beside_its_input(plant, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(LOG)
    plant(tmp_path / "a.meta.json")
    if plant is not _huge:
        plant(tmp_path / "pyproject.toml")
    done = called("analyze", "a.csv")
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(PATIENCE_S)
def test_impossible_outputs_are_refused_at_once(plant, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(LOG)
    plant(tmp_path / "out.csv")
    for option in ("--json-file", "--markdown", "--junitxml"):
        done = called("analyze", "a.csv", option, "out.csv")
        is_new_file = (tmp_path / "out.csv").is_symlink() and done.returncode == 0
        assert done.returncode == 2 or is_new_file, done.stderr
        assert "Traceback" not in done.stderr
    assert called("run", "-o", "out.csv", "--", "true").returncode == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_memdiag_at_any_moment(number: signal.Signals, tmp_path: Path) -> None:
    for moment in range(8):
        with subprocess.Popen(
            [*MEMDIAG, "run", "-q", "-o", f"{moment}.csv", "--", "sleep", "60"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
        ) as memdiag:
            time.sleep(moment * 0.08)  # the moments themselves are what is tried
            memdiag.send_signal(number)
            try:
                memdiag.communicate(timeout=PATIENCE_S)
            finally:
                memdiag.kill()
        assert memdiag.returncode not in (0, 3, 4), moment

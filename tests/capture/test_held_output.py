"""Output that waits for the terminal, and groups that nobody would continue."""

import subprocess
import sys
import tempfile

import pytest

from memdiag.capture.launch.output_tee import Backlog


def written(backlog, tmp_path):
    path = tmp_path / "sink"
    with path.open("wb") as sink:
        assert backlog.write_to(sink.fileno())
    return path.read_bytes()


def test_everything_is_kept_in_order(tmp_path):
    backlog = Backlog(most_bytes=1000)
    for at in range(50):
        backlog.add(b"line %02d\n" % at)
    assert written(backlog, tmp_path) == b"".join(b"line %02d\n" % at for at in range(50))


def test_of_too_much_the_end_is_kept_and_the_rest_is_counted(tmp_path):
    backlog, everything = Backlog(most_bytes=1000), b""
    for at in range(1000):
        line = b"line %03d\n" % at
        everything += line
        backlog.add(line)
    note, _, kept = written(backlog, tmp_path).partition(b"\r\n")
    assert everything.endswith(kept)
    assert 500 <= len(kept) <= 1100
    dropped = len(everything) - len(kept)
    assert note == b"memdiag: %d bytes of earlier output are not shown" % dropped


def test_without_a_place_to_keep_it_the_output_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    backlog = Backlog()
    backlog.add(b"lost")
    monkeypatch.undo()
    assert written(backlog, tmp_path).startswith(b"memdiag: 4 bytes of earlier output")


_ORPHANED = "from memdiag.capture.launch.foreground import is_orphaned; print(is_orphaned())"
_SHELL = """
import subprocess, sys
job = [sys.executable, "-c", sys.argv[1]]
script = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *job]
command = script if sys.argv[2] == "script" else job
subprocess.run(command, preexec_fn=lambda: __import__("os").setpgid(0, 0))
"""


def said_in_a_session(*arguments):
    return subprocess.run(
        [sys.executable, "-c", *arguments],
        start_new_session=True,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_the_leader_of_a_session_is_orphaned():
    assert said_in_a_session(_ORPHANED) == "True"


@pytest.mark.parametrize("started_by", ["shell", "script"])
def test_a_job_of_a_shell_is_not_orphaned_nor_a_command_of_its_script(started_by):
    assert said_in_a_session(_SHELL, _ORPHANED, started_by) == "False"

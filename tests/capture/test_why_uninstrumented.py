"""Each way in which the probe can be kept out is told from the others, on real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from interpreters import old_interpreter

from memdiag.capture.probelink import channel
from memdiag.capture.probelink.why_uninstrumented import StartFacts, explain, read_start_facts
from memdiag.values.measurements import Unavailable

WAIT = "print('ready', flush=True); input()"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return channel.create(tmp_path / "base")


@contextmanager
def running(command: list[str], environ: dict[str, str]) -> Iterator[int]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environ, stdin=pipe, stdout=pipe) as target:
        assert target.stdout is not None
        target.stdout.readline()
        yield target.pid
        target.communicate(b"\n")


def why_no_probe(pid: int, directory: Path | None) -> Unavailable | None:
    suspect = read_start_facts(pid)
    assert suspect is not None
    inside = directory is not None and channel.find_ring(directory, pid) is not None
    return None if inside else explain(suspect, directory)


@pytest.fixture
def reason(directory: Path) -> Callable[..., str | None]:
    """Why there is no probe in a Python started with some flags in a changed environment."""

    def ask(*flags: str, program: str = sys.executable, **changes: str | None) -> str | None:
        environ = {**channel.prepare(os.environ, directory), **changes}
        kept = {name: value for name, value in environ.items() if value is not None}
        with running([program, *flags, "-c", WAIT], kept) as pid:
            found = why_no_probe(pid, directory)
        return None if found is None else found.reason

    return ask


def test_process_with_a_probe_has_no_reason(reason) -> None:
    assert reason() is None
    assert reason("-X", "dev", "-W", "ignore", "-s", "-B") is None


@pytest.mark.parametrize("flags", [["-I"], ["-E"], ["-S"], ["-BS"], ["-X", "dev", "-I"]])
def test_isolating_flags_are_named(reason, flags) -> None:
    found = reason(*flags)
    assert found is not None
    assert f"-{flags[-1][-1]}" in found


def test_cleared_environment_is_named(reason) -> None:
    assert "cleared environment" in reason(PYTHONPATH=None, MEMDIAG_CHANNEL=None)


def test_replaced_pythonpath_is_named(reason) -> None:
    assert "replaced by '/elsewhere'" in reason(PYTHONPATH="/elsewhere")
    assert "removed" in reason(PYTHONPATH=None)


def test_sitecustomize_that_does_not_go_on_is_named(reason, directory, tmp_path) -> None:
    (tmp_path / "sitecustomize.py").write_text("")
    ours = channel.prepare({}, directory)["PYTHONPATH"]
    assert str(tmp_path) in reason(PYTHONPATH=f"{tmp_path}{os.pathsep}{ours}")


def test_channel_of_another_memdiag_is_named(reason, tmp_path) -> None:
    other = channel.create(tmp_path / "other")
    assert "another memdiag" in reason(MEMDIAG_CHANNEL=str(other))


def test_old_python_is_named(reason) -> None:
    program = old_interpreter("3.7")
    if program is None:
        pytest.skip("no Python 3.7 here")
    assert "Python 3.7" in reason(program=program)


def test_program_that_is_no_python_is_named(directory) -> None:
    environ = channel.prepare(os.environ, directory)
    with running(["sh", "-c", "echo ready; read line"], environ) as pid:
        found = why_no_probe(pid, directory)
    assert isinstance(found, Unavailable)
    assert "not a Python program" in found.reason


def test_process_that_is_gone_is_not_seen() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert read_start_facts(gone.pid) is None


def test_process_that_was_not_started_under_memdiag_is_told_so() -> None:
    with running([sys.executable, "-c", WAIT], dict(os.environ)) as pid:
        found = why_no_probe(pid, None)
    assert found is not None
    assert "not started under memdiag" in found.reason
    assert "--attach" in found.remedy


def stranger(**more: object) -> StartFacts:
    known = {"program": "/usr/bin/python3", "argv": ("python3",), "environ": {}, "libpython": ""}
    return StartFacts(**{**known, "uid": 4711, **more})


def test_another_user_is_named(directory) -> None:
    environ = channel.prepare({}, directory)
    found = explain(stranger(environ=environ), directory)
    assert "another user (uid 4711)" in found.reason


def test_process_that_memdiag_may_not_look_at_is_named(directory) -> None:
    assert "may not inspect it" in explain(stranger(program=""), directory).reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_process_of_another_user_can_be_told_to_be_hidden() -> None:
    code = (
        "import os\n"
        "from memdiag.capture.probelink.why_uninstrumented import read_start_facts\n"
        "os.setuid(65534)\n"
        "print(repr(read_start_facts(1).program))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "''\n"


def test_other_implementation_of_python_is_named(directory) -> None:
    found = explain(stranger(program="/opt/pypy/bin/pypy3.10"), directory)
    assert found.reason == "pypy3.10 is not CPython, which the probe needs"

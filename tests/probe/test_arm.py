"""Programs that memdiag did not start are watched as well, if they or their environment say so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from interpreters import interpreters

from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.ring_reader import Kind

ROOT = str(Path(__file__).parent.parent.parent)


def only_channel(base: Path) -> ChannelReader:
    (uid,) = base.glob("memdiag-*")
    (channel,) = uid.iterdir()
    return ChannelReader(channel)


def test_import_of_auto_arms_the_process_and_its_children(watched, tmp_path) -> None:
    code = (
        "import subprocess, sys\n"
        "import memdiag.auto, memdiag\n"
        "memdiag.step(1)\n"
        "child = \"import sys; sys.modules['_memdiag_probe'].listener.step(2)\"\n"
        "subprocess.check_call([sys.executable, '-c', child])\n"
    )
    env = {"PYTHONPATH": ROOT, "TMPDIR": str(tmp_path)}
    done = watched.run_without(sys.executable, "-c", code, env=env)
    assert (done.stderr, done.returncode) == ("", 0)
    assert [e.step for e in only_channel(tmp_path).drain() if e.kind is Kind.STEP] == [1, 2]


@pytest.mark.torch
def test_import_of_auto_after_torch_still_counts_iterations(watched, tmp_path) -> None:
    pytest.importorskip("torch")
    code = (
        "import sys, torch, memdiag.auto\n"
        "del sys.modules['memdiag']  # as if it were to give no tags\n"
        "p = torch.zeros(2, requires_grad=True)\n"
        "o = torch.optim.SGD([p])\n"
        "for _ in range(3): p.sum().backward(); o.step()\n"
    )
    env = {"PYTHONPATH": ROOT, "TMPDIR": str(tmp_path)}
    watched.run_without(sys.executable, "-c", code, env=env)
    assert [e.step for e in only_channel(tmp_path).drain() if e.kind is Kind.STEP] == [1, 2, 3]


def test_import_of_auto_under_memdiag_changes_nothing(watched) -> None:
    code = "import memdiag.auto, memdiag\nmemdiag.step(1)"
    watched.run(sys.executable, "-c", code, env={"PYTHONPATH": ROOT})
    assert [event.step for event in watched.events()] == [1]


def test_one_environment_variable_arms_any_python(watched, tmp_path) -> None:
    shown = watched.run_without(sys.executable, "-m", "memdiag.probe", env={"PYTHONPATH": ROOT})
    directory = shown.stdout.strip()
    code = "import sys; sys.modules['_memdiag_probe'].listener.step(4)"
    for number, program in enumerate(interpreters().values()):
        temporary = tmp_path / str(number)
        temporary.mkdir()
        env = {**watched.environ, "PYTHONPATH": directory, "TMPDIR": str(temporary)}
        done = subprocess.run(
            [program, "-c", code], env=env, capture_output=True, text=True, check=False
        )
        assert (done.stderr, done.returncode) == ("", 0)
        assert [e.step for e in only_channel(temporary).drain() if e.kind is Kind.STEP] == [4]


def test_directory_that_others_may_write_to_is_not_used(watched, tmp_path) -> None:
    base = tmp_path / f"memdiag-{os.getuid()}"
    base.mkdir()
    base.chmod(0o777)
    env = {"PYTHONPATH": ROOT, "TMPDIR": str(tmp_path)}
    done = watched.run_without(sys.executable, "-c", "import memdiag.auto; print('fine')", env=env)
    assert (done.stdout, done.stderr) == ("fine\n", "")
    assert list(base.iterdir()) == []

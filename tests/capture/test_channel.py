"""Channels: private directories, found again, and cleared away when nobody uses them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memdiag.capture import channel
from memdiag.capture.channel import ChannelReader
from memdiag.errors import CannotMeasure
from memdiag.probe.session import Session

DEAD = "4194305-1-00000000"  # beyond the largest pid there can be


def test_channel_is_private(tmp_path: Path) -> None:
    directory = channel.create(tmp_path / "base")
    for made in (directory, directory.parent):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_base_that_others_may_enter_is_not_used(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir(mode=0o777)
    base.chmod(0o777)
    directory = channel.create(base)
    assert not directory.is_relative_to(base)
    channel.remove(directory)


def test_base_that_is_no_directory_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "base").write_text("")
    with pytest.raises(CannotMeasure) as caught:
        channel.create(tmp_path / "base")
    assert "TMPDIR" in caught.value.remedy


def test_channels_of_the_dead_are_removed_and_all_else_is_left(tmp_path: Path) -> None:
    base = tmp_path / "base"
    mine = channel.create(base)
    (base / DEAD).mkdir(mode=0o700)
    (base / "not-ours").mkdir(mode=0o700)
    (base / "a file").write_text("")
    shared = base / "4194305-1-00000001"
    shared.mkdir()
    shared.chmod(0o755)
    channel.create(base)
    left = {path.name for path in base.iterdir()}
    assert DEAD not in left
    assert {mine.name, "not-ours", "a file", shared.name} <= left


def test_channel_with_a_living_writer_outlives_its_maker(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    (base / DEAD).mkdir(mode=0o700)
    Session(str(base / DEAD)).step(1)
    channel.create(base)
    assert [event.step for event in ChannelReader(base / DEAD).drain()] == [1]


def test_environment_of_the_target_keeps_what_was_there() -> None:
    environ = channel.prepare({"HOME": "/h", "PYTHONPATH": "/a:"}, Path("/channel"))
    ours, *theirs = environ["PYTHONPATH"].split(":")
    assert theirs == ["/a", ""]
    modules = {path.stem for path in Path(ours).iterdir()} - {"__pycache__"}
    assert modules == {"sitecustomize"}
    assert environ["HOME"] == "/h"
    again = channel.prepare(environ, Path("/other"))
    assert again["PYTHONPATH"] == environ["PYTHONPATH"]
    assert channel.prepare({}, Path("/channel"))["PYTHONPATH"] == ours


def test_channel_of_a_running_process_is_found(tmp_path: Path) -> None:
    directory = channel.create(tmp_path / "base")
    environ = channel.prepare(os.environ, directory)
    code = "print('ready', flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environ, stdin=pipe, stdout=pipe
    ) as target:
        assert target.stdout is not None
        target.stdout.readline()
        assert channel.find_channel(target.pid) == directory
        target.communicate(b"\n")
    assert channel.find_channel(target.pid) is None


def test_process_without_a_channel_has_none() -> None:
    assert channel.find_channel(os.getppid()) is None


def test_rings_of_the_dead_are_read_to_their_end(tmp_path: Path) -> None:
    directory = channel.create(tmp_path / "base")
    environ = channel.prepare(os.environ, directory)
    code = (
        "import sys\n"
        "listener = sys.modules['_memdiag_probe'].listener\n"
        "for n in range(1000): listener.step(n)\n"
    )
    reader = ChannelReader(directory)
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code], env=environ, check=True)
        assert [event.step for event in reader.drain()] == list(range(1000))
        assert reader.drain() == []
    assert len(reader.processes()) == 3
    reader.close()

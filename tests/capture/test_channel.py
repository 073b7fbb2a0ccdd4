"""Channels: private directories, found again, and cleared away when nobody uses them."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import MEMDIAG

from memdiag.capture.probelink import channel
from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.ring_reader import Kind
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


def test_base_that_is_no_directory_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        directory = channel.create(tmp_path / name)
        assert not directory.is_relative_to(tmp_path)
        channel.remove(directory)
        directory.parent.rmdir()


def test_want_of_any_place_is_an_error_with_a_remedy(monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc/self")
    with pytest.raises(CannotMeasure) as caught:
        channel.create(Path("/proc/self/base"))
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
    channel.remove_stale(base)
    left = {path.name for path in base.iterdir()}
    assert DEAD not in left
    assert {mine.name, "not-ours", "a file", shared.name} <= left


def test_channel_with_a_living_writer_outlives_its_maker(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    (base / DEAD).mkdir(mode=0o700)
    Session(str(base / DEAD)).step(1)
    channel.remove_stale(base)
    assert [event.step for event in ChannelReader(base / DEAD).drain()] == [1]


def test_what_is_not_ours_stays_in_a_channel_that_is_removed(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    (base / DEAD).mkdir(mode=0o700)
    (base / DEAD / "notes.txt").write_text("mine")
    (base / DEAD / "1-1.ring").write_bytes(b"")
    channel.remove_stale(base)
    assert [path.name for path in (base / DEAD).iterdir()] == ["notes.txt"]


def plant(directory: Path) -> None:
    """One of each that could keep a reader waiting, in the place of rings."""
    directory.mkdir(mode=0o700, parents=True)
    os.mkfifo(directory / "1-1.ring")
    (directory / "1-2.ring").mkdir()
    (directory / "1-3.ring").symlink_to("nowhere")
    with (directory / "1-4.ring").open("wb") as file:
        file.truncate(1 << 40)
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(directory)  # names of sockets are short
        try:
            listener.bind("1-5.ring")
        finally:
            os.chdir(here)


@pytest.mark.timeout(20)
def test_nothing_in_the_place_of_a_ring_can_keep_a_reader_waiting(tmp_path: Path) -> None:
    plant(tmp_path / "channel")
    reader = ChannelReader(tmp_path / "channel")
    assert (reader.drain(), reader.processes()) == ([], ())
    reader.close()


@pytest.mark.timeout(60)
def test_nothing_in_a_stale_channel_stands_between_a_person_and_their_command(tmp_path) -> None:
    base = tmp_path / f"memdiag-{os.getuid()}"
    base.mkdir(mode=0o700)
    plant(base / DEAD)
    done = subprocess.run(
        [*MEMDIAG, "run", "-q", "-o", tmp_path / "run.csv", "--", "echo", "hello"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "hello\n"
    assert not (base / DEAD / "1-1.ring").exists(), "it was cleared away afterwards"


def test_runtime_directory_is_preferred_where_it_is_private(tmp_path: Path, monkeypatch) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert channel.create().parent == runtime / "memdiag"
    runtime.chmod(0o755)
    assert channel.create().parent == tmp_path / f"memdiag-{os.getuid()}"


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
        steps = [event.step for event in reader.drain() if event.kind is Kind.STEP]
        assert steps == list(range(1000))
        assert reader.drain() == []
    assert len(reader.processes()) == 3
    reader.close()

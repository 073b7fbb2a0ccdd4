"""Another user of the machine gains nothing by what memdiag does, and forges none of it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from users import (
    OTHER_GID,
    OTHER_UID,
    as_other_user,
    needs_two_users,
    other_python,
    with_memdiag,
)

from memdiag.capture.probelink import channel
from memdiag.capture.probelink.census_request import take_census
from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.guest_probe import attached_probe
from memdiag.capture.probelink.ptrace import is_supported
from memdiag.capture.probelink.ring_reader import Kind
from memdiag.capture.probelink.workspace import User, workspace
from memdiag.errors import CannotWatch
from memdiag.probe.session import Session

pytestmark = needs_two_users
ATTACKER, GROUP = 65533, 65533
LOOP = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.005)\n"


@contextmanager
def running(program: str, **options: object) -> Iterator[int]:
    with subprocess.Popen(
        [other_python(), "-c", program], stdout=subprocess.PIPE, **options
    ) as target:
        assert target.stdout is not None
        assert target.stdout.readline() == b"ready\n"
        try:
            yield target.pid
        finally:
            target.kill()


def tree(top: Path) -> dict[str, tuple[int, int]]:
    """Name -> (owner, permissions) of everything below."""
    return {
        str(path.relative_to(top)): (path.lstat().st_uid, stat.S_IMODE(path.lstat().st_mode))
        for path in top.rglob("*")
    }


@pytest.mark.skipif(not is_supported(), reason="no ptrace for this processor")
def test_root_lets_the_probe_into_the_process_of_another_user() -> None:
    program = (
        "import sys, time\nprint('ready', flush=True)\nn = 0\n"
        "while True:\n"
        "    listener = getattr(sys.modules.get('_memdiag_probe'), 'listener', None)\n"
        "    if listener is not None:\n        n += 1\n        listener.step(n)\n"
        "    time.sleep(0.005)\n"
    )
    with running(program, **as_other_user()) as pid:
        with attached_probe(pid) as probe:
            assert probe.arrived
            reader = ChannelReader(probe.directory, owners=channel.owners_of(pid))
            steps: list[int | None] = []
            until_s = time.monotonic() + 30
            while len(steps) < 3 and time.monotonic() < until_s:
                steps += [event.step for event in reader.drain() if event.kind is Kind.STEP]
            assert steps[:3] == [1, 2, 3]
            reader.close()
        assert not probe.directory.parent.exists()


@pytest.mark.skipif(not is_supported(), reason="no ptrace for this processor")
def test_root_takes_a_census_of_the_process_of_another_user() -> None:
    program = f"kept = [bytearray(50_000) for _ in range(80)]\n{LOOP}"
    with running(program, **as_other_user()) as pid:
        found = take_census(pid, attach=True)
        (census,) = found.censuses.censuses
        (kept,) = census.groups
        assert [name.name for name in kept.path] == ["kept", ""]
        assert kept.size_bytes == 80 * 50_000
        assert all(holder.lines == () for one in found.holders for holder in one.holders)


def test_target_gets_a_directory_for_rings_and_can_change_nothing_else() -> None:
    with workspace(User(uid=OTHER_UID, gid=OTHER_GID)) as files:
        top = files.rings.parent
        files.write_script("pass")
        found = tree(top)
        assert found.pop("rings") == (OTHER_UID, 0o700)
        assert found.pop("rings/watcher") == (0, 0o644)
        assert {mode for uid, mode in found.values()} == {0o755, 0o644}
        assert {uid for uid, _ in found.values()} == {0}
        assert stat.S_IMODE(top.stat().st_mode) == 0o711
        attacks = "; ".join(
            f"attempt(lambda: {what})"
            for what in (
                f"os.listdir({str(top)!r})",
                f"os.rename({str(files.rings)!r}, {str(top / 'x')!r})",
                f"os.symlink('/etc', {str(top / 'x')!r})",
                f"os.unlink({str(files.probe / 'enter_process.py')!r})",
                f"open({str(files.probe / 'enter.py')!r}, 'a')",
            )
        )
        program = (
            "import os\nfailed = 0\n"
            "def attempt(what):\n"
            "    global failed\n"
            "    try: what()\n"
            "    except OSError: failed += 1\n"
            f"{attacks}\nprint(failed)\n"
        )
        done = subprocess.run(
            [other_python(), "-c", program],
            capture_output=True,
            text=True,
            check=True,
            **as_other_user(),
        )
        assert done.stdout == "5\n"
    assert not top.exists()


def test_what_the_target_plants_among_its_rings_is_neither_followed_nor_opened(tmp_path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("of root")
    canary.chmod(0o600)
    before = canary.stat()
    with workspace(User(uid=OTHER_UID, gid=OTHER_GID)) as files:
        plant = (
            "import os, socket, sys\nos.chdir(sys.argv[1])\n"
            "os.unlink('watcher'); os.symlink(sys.argv[2], 'watcher')\n"
            "os.symlink(sys.argv[2], '1-1.ring'); os.symlink('nowhere', '1-2.ring')\n"
            "os.mkfifo('1-3.ring'); os.mkdir('1-4.ring')\n"
            "socket.socket(socket.AF_UNIX).bind('1-5.ring')\n"
            "open('1-6.ring', 'w').truncate(1 << 40)\n"
            "os.symlink(sys.argv[2], 'enter.py')\n"
        )
        command = [other_python(), "-c", plant, str(files.rings), str(canary)]
        subprocess.run(command, check=True, **as_other_user())
        reader = ChannelReader(files.rings, owners=(OTHER_UID, 0))
        assert reader.drain() == []
        assert reader.processes() == ()
        reader.close()
    after = canary.stat()
    assert canary.read_text() == "of root"
    assert (after.st_uid, after.st_mode, after.st_nlink) == (before.st_uid, before.st_mode, 1)
    shutil.rmtree(files.rings.parent, ignore_errors=True)


def forged(directory: Path, pid: int, owner: int) -> None:
    """A directory with a ring of process `pid` in it, all of it made by `owner`."""
    directory.mkdir(parents=True)
    session = Session(str(directory))
    session.step(99)
    (ring,) = directory.glob("*.ring")
    data = bytearray(ring.read_bytes())
    started = channel._started(pid)
    data[8:16], data[24:32] = pid.to_bytes(8, "little"), (started or 0).to_bytes(8, "little")
    ring.write_bytes(data)
    ring.rename(directory / f"{pid}-1.ring")
    for path in (directory / f"{pid}-1.ring", directory):
        os.chown(path, owner, owner)
    directory.chmod(0o700)


@pytest.fixture
def base(tmp_path: Path, monkeypatch) -> Path:
    """Where channels of the victim are looked for: a place like /tmp."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tmp_path.chmod(0o1777)
    return tmp_path / f"memdiag-{OTHER_UID}"


@pytest.mark.parametrize("owner", [OTHER_UID, ATTACKER])
def test_ring_counts_only_if_the_users_own_directory_holds_it(owner: int, base: Path) -> None:
    with running(LOOP, **as_other_user()) as pid:
        forged(base / "4711-1-00000000", pid, owner)
        os.chown(base, owner, owner)
        base.chmod(0o700)
        found = channel.find_channel(pid)
        assert found == (base / "4711-1-00000000" if owner == OTHER_UID else None)


def test_directory_that_others_may_enter_holds_no_rings(base: Path) -> None:
    with running(LOOP, **as_other_user()) as pid:
        forged(base / "4711-1-00000000", pid, OTHER_UID)
        os.chown(base, OTHER_UID, OTHER_UID)
        base.chmod(0o700)
        (base / "4711-1-00000000").chmod(0o770)
        assert channel.find_channel(pid) is None


def test_channel_that_the_environment_names_must_be_the_users_own(tmp_path: Path) -> None:
    for owner in (ATTACKER, OTHER_UID):
        directory = tmp_path / str(owner)
        environ = {**os.environ, "MEMDIAG_CHANNEL": str(directory)}
        with running(LOOP, **as_other_user(env=environ)) as pid:
            forged(directory, pid, owner)
            assert channel.find_channel(pid) == (directory if owner == OTHER_UID else None)
            reader = ChannelReader(directory, owners=channel.owners_of(pid))
            assert [event.step for event in reader.drain()] == ([99] if owner == OTHER_UID else [])
            reader.close()


def test_link_in_the_place_of_a_channel_is_not_followed(tmp_path: Path) -> None:
    with running(LOOP, **as_other_user()) as pid:
        forged(tmp_path / "real", pid, OTHER_UID)
        (tmp_path / "link").symlink_to(tmp_path / "real")
        assert channel.find_ring(tmp_path / "link", pid) is None
        assert channel.find_ring(tmp_path / "real", pid) is not None


def test_another_user_without_rights_is_refused(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom memdiag.capture.probelink.guest_probe import attached_probe\n"
        "from memdiag.errors import CannotWatch\n"
        "try: attached_probe(int(sys.argv[1])).__enter__()\n"
        "except CannotWatch as error: print(error.message)\n"
    )
    with running(LOOP) as pid:
        done = subprocess.run(
            [other_python(), "-c", program, str(pid)],
            capture_output=True,
            text=True,
            check=False,
            **as_other_user(env=with_memdiag()),
        )
    assert f"process {pid} belongs to another user" in done.stdout, done.stderr


def test_process_that_sees_other_files_is_refused() -> None:
    unshared = ["unshare", "--mount", other_python(), "-c", LOOP]
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("no mount namespace can be made here")
    program = f"import os; os.setresgid(*[{OTHER_GID}] * 3); os.setresuid(*[{OTHER_UID}] * 3)\n"
    unshared[-1] = program + LOOP
    with subprocess.Popen(unshared, stdout=subprocess.PIPE, cwd="/") as target:
        assert target.stdout is not None
        target.stdout.readline()
        try:
            with pytest.raises(CannotWatch, match="a different view of the file system"):
                attached_probe(target.pid).__enter__()
        finally:
            target.kill()

"""The files of an attach: a channel that the target can write to, and a probe that it can read.

For a process of another user they are in a directory of their own, which only root can make:

    memdiag-XXXXXXXX/   ours, 0711: can be entered, but not listed or changed
        probe/          ours, 0755: a copy of the probe's files, and the script for remote_exec
        rings/          the target's, 0700: its channel

Nothing in `rings` is ever executed, or opened other than as a ring. Its owner is changed last,
after the lock file in it was made. Everything is made relative to a descriptor of its directory, by
an open that fails if the name is taken.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memdiag import safe_open
from memdiag.capture.probelink import channel
from memdiag.errors import CannotMeasure
from memdiag.probe import ring_format

PROBE = Path(__file__).resolve().parent.parent.parent / "probe"
_SCRIPT = "enter.py"
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The user and group of a process."""

    uid: int
    gid: int

    @property
    def is_us(self) -> bool:
        """Return True if it is the user that memdiag runs as."""
        return self.uid == os.geteuid()


class Workspace:
    """The files of one attach. rings: the channel. probe: the probe's files."""

    def __init__(self, user: User) -> None:
        """user: the target's."""
        self._user = user
        self._lock = -1
        self._top: Path | None = None
        self.rings = Path()
        self.probe = PROBE

    def make(self) -> None:
        """Make the files. Raises OSError; call `remove` in any case."""
        if self._user.is_us:
            self.rings = channel.create()
            self._hold()
        else:
            self._make_for_other_user()

    def write_script(self, text: str) -> Path:
        """Write a file that the target can read but not change. Raises OSError."""
        place, mode = (self.rings, 0o600) if self._user.is_us else (self.probe, 0o644)
        with safe_open.closing(safe_open.open_directory(place)) as fd:
            _write(_SCRIPT, text.encode(), fd, mode=mode)
        return place / _SCRIPT

    def _make_for_other_user(self) -> None:
        self._top = _trusted_place() / f"memdiag-{secrets.token_hex(8)}"
        self._top.mkdir(mode=0o700)
        self.rings, self.probe = self._top / "rings", self._top / "probe"
        with safe_open.closing(safe_open.open_private(self._top, owners=(os.geteuid(),))) as top:
            os.mkdir("rings", 0o700, dir_fd=top)
            self._hold()
            _copy_files(PROBE, "probe", top)
            with safe_open.closing(safe_open.open_directory("rings", dir_fd=top)) as rings:
                os.fchown(rings, self._user.uid, self._user.gid)
            os.fchmod(top, 0o711)

    def _hold(self) -> None:
        """Make and lock the file that the probe watches: it detaches when the lock is released."""
        with safe_open.closing(safe_open.open_private(self.rings, owners=(os.geteuid(),))) as rings:
            self._lock = safe_open.create(ring_format.WATCHER, mode=0o644, dir_fd=rings)
        os.fchmod(self._lock, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove what was made."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        if self.rings == Path():
            return
        with (
            contextlib.suppress(OSError),
            safe_open.closing(safe_open.open_directory(self.rings)) as rings,
        ):
            safe_open.remove(_SCRIPT, dir_fd=rings)
        channel.remove(self.rings)
        if self._top is not None:
            shutil.rmtree(self.probe, ignore_errors=True)  # nobody else can write to it
            with contextlib.suppress(OSError):  # the target has put files into its part
                self._top.rmdir()


@contextmanager
def workspace(user: User) -> Iterator[Workspace]:
    """The files of an attach to a process of `user`. Raises CannotMeasure."""
    files = Workspace(user)
    try:
        try:
            files.make()
        except OSError as error:
            raise CannotMeasure(
                f"no directory could be made for the probe: {error.strerror}",
                remedy="run memdiag as the target's user",
            ) from error
        yield files
    finally:
        files.remove()


def _trusted_place() -> Path:
    """A directory where only root and this user can rename our directory. Raises OSError."""
    for place in (Path(tempfile.gettempdir()), *_TEMPORARY):
        if safe_open.is_trusted(place):
            return place
    raise PermissionError(1, "others may rename what is in the directory for temporary files")


def _copy_files(source: Path, name: str, dir_fd: int) -> None:
    """Copy the Python files of a directory of ours, recursively, readable for everybody."""
    os.mkdir(name, 0o700, dir_fd=dir_fd)
    with safe_open.closing(safe_open.open_directory(name, dir_fd=dir_fd)) as fd:
        for path in sorted(source.iterdir()):
            if path.suffix == ".py":
                _write(path.name, path.read_bytes(), fd, mode=0o644)
            elif path.is_dir() and path.name != "__pycache__":
                _copy_files(path, path.name, fd)
        os.fchmod(fd, 0o755)


def _write(name: str, data: bytes, dir_fd: int, *, mode: int) -> None:
    with safe_open.closing(safe_open.create(name, mode=0o600, dir_fd=dir_fd)) as fd:
        safe_open.write_all(fd, data)
        os.fchmod(fd, mode)

"""What an attach needs on disk: a channel that the target can write to, and a probe it can read.

For a process of another user that is a place of its own, which only root gets to make:

    memdiag-XXXXXXXX/   ours, 0711: to be passed through, not to be listed or changed
        probe/          ours, 0755: a copy of the probe's files, and the script for remote_exec
        rings/          the target's, 0700: its channel

Nothing in `rings` is ever executed, or opened other than as a ring. It is handed over as the last
thing, after the lock file in it was made; everything is made relative to a descriptor of its
directory, by an open that fails if something is there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from memdiag import safe_open
from memdiag.capture.probelink import channel
from memdiag.errors import CannotMeasure
from memdiag.probe import ring_format

PROBE = Path(__file__).resolve().parent.parent.parent / "probe"
_SCRIPT = "enter.py"
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who a process runs as."""

    uid: int
    gid: int

    @property
    def is_us(self) -> bool:
        """Return True if it is the user that memdiag runs as."""
        return self.uid == os.geteuid()


class Workspace:
    """The files of one attach. Enter it to make them; they are removed when it is left.

    rings: the channel. probe: the probe's files.
    """

    def __init__(self, user: User) -> None:
        """user: the target's."""
        self._user = user
        self._lock = -1
        self._top: Path | None = None
        self.rings = Path()
        self.probe = PROBE

    def __enter__(self) -> Workspace:
        """Raises CannotMeasure."""
        try:
            if self._user.is_us:
                self.rings = channel.create()
                self._hold()
            else:
                self._make_for_other_user()
        except OSError as error:
            self._remove()
            raise CannotMeasure(
                f"no directory could be made for the probe: {error.strerror}",
                remedy="run memdiag as the target's user",
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._remove()

    def write_script(self, text: str) -> Path:
        """A file with this text, which the target can read and not change. Raises OSError."""
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
        """Make and lock the file that the probe watches: it leaves when the lock is gone."""
        with safe_open.closing(safe_open.open_private(self.rings, owners=(os.geteuid(),))) as rings:
            self._lock = safe_open.create(ring_format.WATCHER, mode=0o644, dir_fd=rings)
        os.fchmod(self._lock, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _remove(self) -> None:
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
            with contextlib.suppress(OSError):  # the target has left something in its part
                self._top.rmdir()


def _trusted_place() -> Path:
    """Where nobody but root and we can rename a directory of ours. Raises OSError."""
    for place in (Path(tempfile.gettempdir()), *_TEMPORARY):
        if safe_open.is_trusted(place):
            return place
    raise PermissionError(1, "others may rename what is in the directory for temporary files")


def _copy_files(source: Path, name: str, dir_fd: int) -> None:
    """The Python files of a directory of ours, and of those in it, for everybody to read."""
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

"""The probe as a guest in a process that memdiag did not start: it comes on request, and leaves.

It leaves by itself, within a second, when its watcher ends in whatever way: see
`memdiag.probe.watcher`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from types import TracebackType

from memdiag.capture import channel
from memdiag.capture.injection import Injected, RemoteExec, inject
from memdiag.capture.permission import refuse_forbidden, refuse_unfit
from memdiag.errors import CannotMeasure
from memdiag.probe import layout

PROBE = Path(__file__).resolve().parent.parent / "probe"
# The main thread may be inside of a long call (a collective, a sleep): the recording does not
# wait for it. Chosen.
_ARRIVAL_S = 2.0


class Visit:
    """A channel of its own for a running process and its future children. Enter it to attach.

    injected: how the probe was let in. arrived: it was there within two seconds.
    """

    def __init__(self, pid: int, *, remote_exec: RemoteExec | None = None) -> None:
        self._pid = pid
        self._remote_exec = remote_exec
        self._lock = -1
        self.directory = Path()
        self.injected: Injected | None = None
        self.arrived = False

    def __enter__(self) -> Visit:
        """Raises CannotWatch where the probe cannot be let in."""
        refuse_forbidden(self._pid)
        refuse_unfit(self._pid, PROBE)
        try:
            owner = Path(f"/proc/{self._pid}").stat()
            self.directory = _own_channel(owner)
            self._hold()
            probe = _readable_probe(self.directory, owner)
            self.injected = inject(
                self._pid, self.directory, probe=probe, remote_exec=self._remote_exec
            )
        except BaseException:
            self._release()
            raise
        self.arrived = self._arrives()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._release()

    def note(self) -> str:
        """What was done to the process, for the recording."""
        injected = self.injected
        if injected is None:
            return ""
        stopped = ""
        if injected.stopped_s is not None:
            stopped = f", which stopped the process for {injected.stopped_s * 1e3:.0f} ms"
        return f"the probe was let in by {injected.way}{stopped}; it leaves with memdiag"

    def _hold(self) -> None:
        path = self.directory / layout.WATCHER
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        os.fchmod(self._lock, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        if self.directory != Path():
            channel.remove(self.directory)

    def _arrives(self) -> bool:
        until_s = time.monotonic() + _ARRIVAL_S
        while time.monotonic() < until_s:
            if channel.find_ring(self.directory, self._pid) is not None:
                return True
            time.sleep(0.005)
        return False


def _own_channel(owner: os.stat_result) -> Path:
    """A directory that the target can write to, whoever it runs as. Raises CannotMeasure."""
    if owner.st_uid == os.geteuid():
        return channel.create()
    try:
        directory = Path(tempfile.mkdtemp(prefix="memdiag-"))
        os.chown(directory, owner.st_uid, owner.st_gid, follow_symlinks=False)
    except OSError as error:
        raise CannotMeasure(
            f"no directory could be made for the target's user: {error.strerror}",
            remedy="run memdiag as that user",
        ) from error
    return directory


def _readable_probe(directory: Path, owner: os.stat_result) -> Path:
    """The probe's files where the target can read them: ours may be in a private home."""
    if owner.st_uid == os.geteuid():
        return PROBE
    copy = directory / "probe"
    shutil.copytree(PROBE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy

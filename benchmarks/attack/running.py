"""Runs a command under a watchdog: what it printed, how it ended, and whether it hung.

A hang is more than LIMIT_S of a command's own time: what its processes waited for a processor
(/proc/PID/schedstat) or for the disk, because of other work on the machine, is not counted.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

LIMIT_S = 5.0
ROOT = Path(__file__).resolve().parents[2]
MEMDIAG = (sys.executable, "-m", "memdiag")
_MARK = "ATTACK_RUN"
# However busy the machine is, this much of the clock is a hang. Chosen.
_LONGEST_S = 60.0
_LOOK_S = 0.02
_MOST_BYTES = 32 << 20
_MOST_SHOWN = 4
_SIGNS = ("Traceback (most recent", "bug in memdiag", "panicked at", "Fatal Python error")
_BARE = ("PATH", "LD_LIBRARY_PATH", "PYENV_VERSION", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended.

    status: as a shell shows it, None where it hung. hang: what it hung in, "" where it did not.
    left: its processes that were there a moment after it had ended.
    """

    command: tuple[str, ...]
    cwd: str
    status: int | None
    stdout: bytes
    stderr: bytes
    own_s: float
    hang: str
    left: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """Its stderr as text."""
        return self.stderr.decode(errors="replace")

    def shown(self) -> str:
        """The command as it can be typed, and the last of what it said."""
        said = " / ".join(self.said.strip().splitlines()[-3:])[-300:]
        typed = shlex.join(self.command).replace("\n", "\\n")
        return f"[cd {self.cwd}; {typed}] {said}"


def environ(place: Path, **more: str) -> dict[str, str]:
    """A small environment whose home and temporary directory are below `place`."""
    for name in ("home", "tmp"):
        (place / name).mkdir(exist_ok=True)
    plain = {name: os.environ[name] for name in _BARE if name in os.environ}
    own = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), "LANG": "C.UTF-8"}
    # Where files may not grow, Python 3.11 leaves torn byte code behind for everybody after it.
    own["PYTHONDONTWRITEBYTECODE"] = "1"
    own["PYTHONPATH"] = str(ROOT)  # this memdiag, whatever is installed
    return {**plain, **own, **more}


class Running:
    """A started command, in a session of its own."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        user: int | None = None,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
    ) -> None:
        self._mark = uuid.uuid4().hex
        self.command = tuple(map(str, command))
        self._cwd = str(cwd)
        self.process = subprocess.Popen(
            self.command,
            cwd=cwd,
            env={**env, _MARK: self._mark},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        self.pid = self.process.pid
        self._clock = OwnTime(self.pid)
        self._readers = [_Reader(stream) for stream in (self.process.stdout, self.process.stderr)]

    def send(self, number: int) -> None:
        """Send a signal to the command itself, if it is still there."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def finish(self, limit_s: float = LIMIT_S, *, grace_s: float = 0.0) -> Ended:
        """Wait for its end, then end all that it left behind.

        grace_s: what is left after so long is noted; 0 for not looking.
        """
        hang = ""
        while self.process.poll() is None and not hang:
            if self._clock.exceeds(limit_s):
                hang = self._hung()
            time.sleep(_LOOK_S / 4)
        own_s = self._clock.own_s()
        left = self._left(grace_s) if grace_s and not hang else ()
        self.kill()
        stdout, stderr = (reader.all() for reader in self._readers)
        return Ended(
            command=self.command,
            cwd=self._cwd,
            status=None if hang else shell_status(self.process.returncode),
            stdout=stdout,
            stderr=stderr,
            own_s=own_s,
            hang=hang,
            left=left,
        )

    def pids(self) -> list[int]:
        """Its processes that live, also those in sessions of their own."""
        return [pid for pid in _pids() if _session(pid) == self.pid or _carries(pid, self._mark)]

    def kill(self) -> None:
        """End all of its processes."""
        for _ in range(50):
            found = [pid for pid in self.pids() if _state(pid) != "Z"]
            if not found:
                break
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_LOOK_S)
        self.process.wait()

    def _left(self, grace_s: float) -> tuple[str, ...]:
        """Processes that are there a while after the end."""
        until_s = time.monotonic() + grace_s
        while True:
            found = [pid for pid in self.pids() if _state(pid) not in "ZX"]
            if not found or time.monotonic() > until_s:
                return tuple(map(_named, found))
            time.sleep(_LOOK_S)

    def _hung(self) -> str:
        """What it hangs in, and whether SIGTERM ends it."""
        states = ", ".join(_named(pid) for pid in self.pids())
        self.send(signal.SIGTERM)
        try:
            self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            return f"hangs ({states}), SIGTERM does not end it"
        return f"hangs ({states}), SIGTERM ends it"


def run(
    command: Sequence[str], *, limit_s: float = LIMIT_S, grace_s: float = 0.0, **more: Any
) -> Ended:
    """Run a command to its end; `more` as for Running."""
    return Running(command, **more).finish(limit_s, grace_s=grace_s)


def complaints(ended: Ended) -> list[str]:
    """What no command may ever do: hang, show a traceback, fill the terminal with codes."""
    found = []
    if ended.hang:
        found.append(f"{ended.hang}, after {ended.own_s:.1f} s of its own")
    said = ended.said + ended.stdout.decode(errors="replace")
    sign = next((sign for sign in _SIGNS if sign in said), "")
    if sign:
        lines = said[said.index(sign) :].strip().splitlines()
        raised = next((line for line in lines[1:] if line[:1].isalpha()), lines[-1])
        found.append(f"shows {sign!r}: {raised[:200]}")
    if "\x1b" in ended.said:
        found.append("sends an escape sequence to stderr")
    if ended.left:
        found.append(f"leaves processes behind: {', '.join(ended.left)}")
    return found


def blamed(ended: Ended, findings: Iterable[str]) -> list[str]:
    """One sentence of the findings and of the command that shows them; none without findings."""
    found = list(findings)
    return ["; ".join(found[:_MOST_SHOWN]) + " " + ended.shown()] if found else []


def shell_status(code: int) -> int:
    """The status that a shell shows for what Popen gives."""
    return code if code >= 0 else 128 - code


class OwnTime:
    """Time of a session's processes that they did not spend waiting for others' work."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._began_s = self._looked_s = time.monotonic()
        self._disk_s = 0.0
        self._ask_s = 0.0

    def exceeds(self, limit_s: float) -> bool:
        """Return True if it is more than the limit. Call it often."""
        self._look_at_disk()
        now_s = time.monotonic()
        wall_s = now_s - self._began_s
        if wall_s > _LONGEST_S:
            return True
        if wall_s - self._disk_s <= limit_s or now_s < self._ask_s:
            return False
        self._ask_s = now_s + 10 * _LOOK_S  # looking is work as well
        return self.own_s() > limit_s

    def own_s(self) -> float:
        """Seconds since the beginning."""
        pids = [pid for pid in _pids() if pid == self._session or _session(pid) == self._session]
        queued_s = sum(max(map(_queued_s, _tasks(pid)), default=0.0) for pid in pids)
        return max(0.0, time.monotonic() - self._began_s - self._disk_s - queued_s)

    def _look_at_disk(self) -> None:
        now_s = time.monotonic()
        if _state(self._session) == "D":
            self._disk_s += now_s - self._looked_s
        self._looked_s = now_s


class _Reader(threading.Thread):
    """Reads a pipe to its end, so that nobody waits for room in it."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._data = bytearray()
        if stream is not None:
            self.start()

    def run(self) -> None:
        if self._stream is None:
            return
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(self._stream.fileno(), 1 << 16):
                self._data += data[: max(0, _MOST_BYTES - len(self._data))]

    def all(self) -> bytes:
        """What was read; waits for the end of the stream, but not for ever."""
        if self._stream is not None:
            self.join(2.0)
            if not self.is_alive():
                self._stream.close()
        return bytes(self._data)


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()]


def _tasks(pid: int) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _queued_s(task: str) -> float:
    try:
        with open(f"{task}/schedstat") as file:  # noqa: PTH123
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _state(pid: int) -> str:
    fields = _stat(pid)
    return fields[0] if fields else "X"


def _session(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[3]) if len(fields) > 3 else -1


def _carries(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return f"{_MARK}={mark}".encode() in file.read()
    except OSError:
        return False


def _named(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            words = file.read().replace(b"\0", b" ").decode(errors="replace")[:60].strip()
        with open(f"/proc/{pid}/wchan") as file:  # noqa: PTH123
            channel = file.read()
    except OSError:
        words, channel = "", ""
    return f"{pid} {_state(pid)} {channel} {words}".replace("  ", " ")

"""Programs on a real (pseudo) terminal, with a keyboard and a screen."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

MEMDIAG = (sys.executable, "-m", "memdiag")
PATIENCE_S = 60.0

# The last line of a report.
CONCLUSION = r"memdiag: .*(STABLE|WARMUP|LEAK|INCONCLUSIVE)"


def python(program: str) -> list[str]:
    """The command that runs a program text."""
    return [sys.executable, "-u", "-c", program]


def recordings(directory: Path) -> list[Path]:
    """The recordings there."""
    return sorted((*directory.glob("*.csv"), *directory.glob(".memdiag/runs/*/*.csv")))


class Terminal:
    """A command as the leader of a session of its own, on a terminal of its own."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        environ: Mapping[str, str] | None = None,
        size: tuple[int, int] = (24, 80),
    ) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=directory,
            env={**os.environ, "TERM": "xterm", **(environ or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(theirs)
        self.screen = b""

    def until(self, pattern: str) -> re.Match[bytes]:
        """Read until the pattern was written."""
        expression = re.compile(pattern.encode(), re.S)
        deadline_s = time.monotonic() + PATIENCE_S
        while not (found := expression.search(self.screen)):
            if time.monotonic() > deadline_s or not self._read():
                raise AssertionError(f"{pattern!r} never came:\n{self.screen.decode()}")
        return found

    def type(self, keys: str) -> None:
        """Press keys; "\\x03" is Ctrl-C, "\\x1a" is Ctrl-Z."""
        os.write(self._ours, keys.encode())

    def resize(self, rows: int, columns: int) -> None:
        """Change the window's size."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def finish(self) -> int:
        """Read to the end; the status as a shell shows it."""
        while self._read():
            pass
        code = self.process.wait(PATIENCE_S)
        return code if code >= 0 else 128 - code

    def close(self) -> None:
        """End whatever is left in the session."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._ours)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], PATIENCE_S)
        try:
            data = os.read(self._ours, 65536) if ready else b""
        except OSError:  # everybody has closed the terminal
            return False
        self.screen += data
        return bool(data)

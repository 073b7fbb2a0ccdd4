"""Open a file that can be read in place, or a stream that is read once.

No open blocks: a FIFO without a writer, a tape or a terminal could block it forever. The open file
is checked, never the name, which may refer to another file a moment later.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memdiag.errors import ReadError
from memdiag.safe_open import READ, kind_of

HEAD_BYTES = 1 << 16
# A FIFO has a writer once the other command starts, which may be typed after ours: chosen.
WRITER_WITHIN_S = 5.0
# How long Ctrl-C may take: chosen.
_LOOK_FOR_SIGNALS_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open file or stream.

    size_bytes: of a regular file; None for a stream.
    begun: bytes that were already read from a stream.
    """

    file: BinaryIO
    size_bytes: int | None
    begun: bytes = b""


class Waiting:
    """Reads a slow stream so that Ctrl-C ends the wait.

    If a signal arrives between two reads of a buffered file, Python handles it only after the
    second one has returned, which may be never.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes; fewer only at the end."""
        taken = bytearray()
        while len(taken) < size:
            if not self.until(_LOOK_FOR_SIGNALS_S):
                continue
            try:
                piece = os.read(self._fd, size - len(taken))
            except BlockingIOError:
                continue
            if not piece:
                break
            taken += piece
        return bytes(taken)

    def until(self, wait_s: float) -> bool:
        """Return True if there is input, or its end, within `wait_s` seconds."""
        return bool(self._poll.poll(wait_s * 1000))


def opened(name: str) -> Opened:
    """Open the named file or stream. Raises OSError, and ReadError for anything else."""
    try:
        fd = os.open(name, READ)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise _no_stream(name, mode_of(name) or 0) from error
    try:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if stat.S_ISBLK(found.st_mode):
            raise _no_stream(name, found.st_mode)
        begun = _awaited(fd, name) if stat.S_ISFIFO(found.st_mode) else b""
        os.set_blocking(fd, stat.S_ISREG(found.st_mode))
    except BaseException:
        os.close(fd)
        raise
    size_bytes = found.st_size if stat.S_ISREG(found.st_mode) else None
    return Opened(file=open(fd, "rb"), size_bytes=size_bytes, begun=begun)  # noqa: PTH123


def mode_of(name: str | Path) -> int | None:
    """The mode of the file that a name refers to, None if it cannot be found out."""
    try:
        return os.stat(name).st_mode  # noqa: PTH116 - Path("") is the working directory
    except (OSError, ValueError):
        return None


def place_of(file: BinaryIO) -> Path | None:
    """A path that opens the same file again, even if it was renamed or deleted; None if the system
    has none. (/dev/fd of macOS shares the position, so readers would interfere.)
    """
    if sys.platform != "linux":
        return None
    fd = file.fileno()
    place = Path(f"/proc/self/fd/{fd}")
    try:
        return place if os.path.samestat(place.stat(), os.fstat(fd)) else None
    except OSError:  # no /proc, or no access to it
        return None


def _awaited(fd: int, name: str) -> bytes:
    """Wait until somebody writes to the pipe; return the bytes that were read to find out.

    A pipe that was opened without blocking returns b"" as long as it has no writer, and an error
    if its writer has not written yet.
    """
    waiting = Waiting(fd)
    deadline_s = time.monotonic() + WRITER_WITHIN_S
    while (left_s := deadline_s - time.monotonic()) > 0:
        if waiting.until(min(left_s, _LOOK_FOR_SIGNALS_S)):
            return b""
    try:
        begun = os.read(fd, HEAD_BYTES)
    except BlockingIOError:
        return b""
    if not begun:
        raise ReadError(
            f"no process writes to this pipe (waited {WRITER_WITHIN_S:g} s)",
            source=name,
            remedy="start the program that writes to it, or name a file",
        )
    return begun


def _no_stream(name: str, mode: int) -> ReadError:
    return ReadError(
        f"it is {kind_of(mode)}, which cannot be read",
        source=name,
        remedy="name a file or a pipe, or - for standard input",
    )

"""What a name leads to: a file that can be read in place, or a stream that is read once.

No open waits: a FIFO that nobody writes to, a tape or a terminal could hold it forever. What is
checked is the open file, never the name, which may lead elsewhere a moment later.
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

from memdiag.errors import UnreadableInput
from memdiag.safe_open import kind_of

HEAD_BYTES = 1 << 16
# A FIFO gets its writer when the other command starts, which may be typed after ours: chosen.
WRITER_WITHIN_S = 5.0
# How long Ctrl-C may take: chosen.
_LOOK_FOR_SIGNALS_S = 0.1

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open file or stream.

    size_bytes: of a regular file; None for what is read once.
    begun: what was read of a stream already.
    """

    file: BinaryIO
    size_bytes: int | None
    begun: bytes = b""


class Waiting:
    """What is read where input may be long in coming, so that Ctrl-C ends the wait.

    Where a signal comes between two reads of a buffered file, Python does not look at it before the
    second one has returned, and that may be never.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def read(self, size: int, /) -> bytes:
        """So many bytes; fewer only at the end."""
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
        """There is something to read, or an end, before so many seconds have passed."""
        return bool(self._poll.poll(wait_s * 1000))


def opened(name: str) -> Opened:
    """What the user named, open for reading. Raises OSError, and UnreadableInput for what is
    neither a file nor a stream.
    """
    try:
        fd = os.open(name, _READ)
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
    """The mode of what a name leads to, None where that cannot be known."""
    try:
        return os.stat(name).st_mode  # noqa: PTH116 - Path("") is the working directory
    except (OSError, ValueError):
        return None


def place_of(file: BinaryIO) -> Path | None:
    """Where an open file can be opened again, whatever became of its name; None where the system
    knows no such place. (macOS has /dev/fd, which shares the position: readers would interfere.)
    """
    if sys.platform != "linux":
        return None
    fd = file.fileno()
    place = Path(f"/proc/self/fd/{fd}")
    try:
        return place if os.path.samestat(place.stat(), os.fstat(fd)) else None
    except OSError:  # no /proc, or a process that may not look at itself
        return None


def _awaited(fd: int, name: str) -> bytes:
    """Wait until somebody writes to the pipe; what had to be read to know that.

    A pipe that was opened without waiting gives b"" as long as it has no writer, and an error
    where it has one that has not written yet.
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
        raise UnreadableInput(
            f"nobody writes to this pipe: none did for {WRITER_WITHIN_S:g} s",
            source=name,
            remedy="start the program that writes to it, or name a file",
        )
    return begun


def _no_stream(name: str, mode: int) -> UnreadableInput:
    return UnreadableInput(
        f"it is {kind_of(mode)}, which is not read",
        source=name,
        remedy="name a file or a pipe, or - for standard input",
    )

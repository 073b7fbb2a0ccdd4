"""Copies of inputs that can be read only once or are compressed: in memory, or on disk if large.

The file on disk has no name if the system supports that: it is gone however this process ends.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from memdiag.recording.inputs.opening import HEAD_BYTES, place_of
from memdiag.safe_open import write_all

# A log of this size is read several times faster than it could be printed.
HELD_BYTES = 32 << 20
_PIECE_BYTES = 1 << 18
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes; fewer only at the end."""
        ...


class Stream:
    """A stream whose head can be read in advance.

    below: the stream. begun: bytes that were already read from it. at_most_bytes: reading more
    raises TooLarge. watch: called with the number of bytes read so far.
    """

    def __init__(
        self,
        below: Readable,
        *,
        begun: bytes = b"",
        at_most_bytes: int | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        self._below = below
        self._ahead = begun
        self._at_most_bytes = at_most_bytes
        self._watch = watch
        self._taken_bytes = len(begun)
        self._ended = False

    def head(self) -> bytes:
        """The first 64 KiB, which `read` returns again."""
        if len(self._ahead) < HEAD_BYTES:
            self._ahead += self._take(HEAD_BYTES - len(self._ahead))
        return self._ahead[:HEAD_BYTES]

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes; fewer only at the end."""
        if not self._ahead:
            return self._take(size)
        piece, self._ahead = self._ahead[:size], self._ahead[size:]
        return piece if len(piece) == size else piece + self._take(size - len(piece))

    def _take(self, size: int) -> bytes:
        if self._ended:  # a terminal user would have to press Ctrl-D twice
            return b""
        piece = self._below.read(size)
        self._ended = len(piece) < size
        self._taken_bytes += len(piece)
        if self._at_most_bytes is not None and self._taken_bytes > self._at_most_bytes:
            raise TooLarge
        if self._watch is not None:
            self._watch(self._taken_bytes)
        return piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Spool:
    """A temporary file with a copy of a stream, deleted when closed. `path` opens it."""

    file: BinaryIO
    path: Path


class TooLarge(Exception):
    """The input is larger than allowed."""


class NoRoom(Exception):
    """The temporary file could not be written: `where`, the reason, and its least size."""

    def __init__(self, where: str, reason: str, needed_bytes: int, *, full: bool) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason
        self.needed_bytes = needed_bytes
        self.full = full


def spooled(stream: Readable, *, at_most_bytes: int) -> bytes | Spool:
    """The content of the stream, or a file with it. Raises TooLarge, NoRoom, and OSError if the
    stream cannot be read.
    """
    held = bytearray()
    while len(held) <= min(HELD_BYTES, at_most_bytes):
        piece = stream.read(_PIECE_BYTES)
        if not piece:
            return bytes(held)
        held += piece
    if len(held) > at_most_bytes:
        raise TooLarge
    spool = _new_spool(len(held))
    try:
        size_bytes, piece = 0, bytes(held)
        held.clear()
        while piece:
            size_bytes += len(piece)
            if size_bytes > at_most_bytes:
                raise TooLarge
            _write(spool, piece, size_bytes)
            piece = stream.read(_PIECE_BYTES)
    except BaseException:
        spool.file.close()
        raise
    return spool


def _new_spool(needed_bytes: int) -> Spool:
    where = "the temporary directory"
    try:
        where = tempfile.gettempdir()
        # Unbuffered: closing must not retry a failed write.
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - for later readers
        if (path := place_of(file)) is not None:
            return Spool(file=file, path=path)
        file.close()
        named = tempfile.NamedTemporaryFile(prefix="memdiag-", buffering=0)  # noqa: SIM115
        return Spool(file=named, path=Path(named.name))  # type: ignore[arg-type]
    except OSError as error:
        raise _no_room(where, error, needed_bytes) from error


def _write(spool: Spool, piece: bytes, size_bytes: int) -> None:
    try:
        write_all(spool.file.fileno(), piece)
    except OSError as error:
        raise _no_room(tempfile.gettempdir(), error, size_bytes) from error


def _no_room(where: str, error: OSError, needed_bytes: int) -> NoRoom:
    reason = error.strerror or str(error)
    return NoRoom(where, reason, needed_bytes, full=error.errno in _FULL)

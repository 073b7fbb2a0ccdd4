"""What can be read only once, or has to be unpacked: held in memory, or on disk if it is large.

The file on disk has no name where the system can do without one: however this process ends, nothing
of it is left.
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
        """So many bytes; fewer only at the end."""
        ...


class Stream:
    """A stream whose beginning can be looked at before it is read.

    below: what is read. begun: what was read of it already. at_most_bytes: if it holds more,
    reading raises TooLarge. watch: is told how much was read.
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
        """The first 64 KiB. They are still to be read."""
        if len(self._ahead) < HEAD_BYTES:
            self._ahead += self._take(HEAD_BYTES - len(self._ahead))
        return self._ahead[:HEAD_BYTES]

    def read(self, size: int, /) -> bytes:
        """So many bytes; fewer only at the end."""
        if not self._ahead:
            return self._take(size)
        piece, self._ahead = self._ahead[:size], self._ahead[size:]
        return piece if len(piece) == size else piece + self._take(size - len(piece))

    def _take(self, size: int) -> bytes:
        if self._ended:  # a terminal would have to end its input twice
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
    """A temporary file with all that a stream held: gone when it is closed. `path` leads to it."""

    file: BinaryIO
    path: Path


class TooLarge(Exception):
    """There was more than was allowed."""


class NoRoom(Exception):
    """The temporary file could not be written: `where`, the reason, and how much was to go there
    at the least."""

    def __init__(self, where: str, reason: str, needed_bytes: int, *, full: bool) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason
        self.needed_bytes = needed_bytes
        self.full = full


def spooled(stream: Readable, *, at_most_bytes: int) -> bytes | Spool:
    """All that the stream holds, or a file of it. Raises TooLarge, NoRoom, and OSError where the
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
        # Unbuffered: what could not be written must not be tried again when it is closed.
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

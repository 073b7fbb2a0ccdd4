"""What can be read only once, or has to be unpacked: held in memory, or on disk if it is large."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO, Protocol

# A log of this size is read several times faster than it could be printed.
HELD_BYTES = 32 << 20
_PIECE_BYTES = 4 << 20

# Deleted when they are closed: at the end of the process.
_spools: list[IO[bytes]] = []


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """At most so many, none at the end."""
        ...


class TooLarge(Exception):
    """There was more than was allowed."""


def spooled(stream: Readable, *, at_most: int | None = None) -> bytes | Path:
    """All that the stream holds, or a file of it that is gone with this process.

    at_most: raises TooLarge beyond so many bytes. Raises OSError.
    """
    held = bytearray()
    while len(held) <= HELD_BYTES:
        piece = stream.read(_PIECE_BYTES)
        if not piece:
            return bytes(held)
        held += piece
    spool = tempfile.NamedTemporaryFile(prefix="memdiag-")  # noqa: SIM115 - for later readers
    size = spool.write(held)
    held.clear()
    while piece := stream.read(_PIECE_BYTES):
        size += spool.write(piece)
        if at_most is not None and size > at_most:
            spool.close()
            raise TooLarge
    spool.flush()
    _spools.append(spool)
    return Path(spool.name)

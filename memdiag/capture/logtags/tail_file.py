"""Follows a log that somebody else writes: to its end, over rotation and truncation."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from memdiag import safe_open

_AT_A_TIME = 1 << 20
# Of what was there before, so much may tell where the job is now. Chosen.
_TAIL_BYTES = 64 << 10


class Follower:
    """The bytes that are added to a file from now on, whichever file has its name.

    One that is there already is followed from its end; one that comes later, from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._at = 0
        self.seen = False
        self.before = b""
        self._open()
        if self._fd is not None:
            size = os.fstat(self._fd).st_size
            self._at = max(0, size - _TAIL_BYTES)
            self.before = os.pread(self._fd, size - self._at, self._at)
            self._at = size
            if len(self.before) == _TAIL_BYTES:
                self.before = self.before.partition(b"\n")[2]

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What it holds open."""
        return () if self._fd is None else (self._fd,)

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def read(self) -> Iterator[bytes]:
        """What was added since the last call. An empty piece: a new file begins here."""
        yield from self._rest()
        if self._replaced():
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None
                yield b""
            self._open()
            yield from self._rest()

    def _rest(self) -> Iterator[bytes]:
        while self._fd is not None:
            try:
                if os.fstat(self._fd).st_size < self._at:
                    self._at = 0
                    yield b""
                data = os.pread(self._fd, _AT_A_TIME, self._at)
            except OSError:
                return
            if not data:
                return
            self._at += len(data)
            yield data

    def _replaced(self) -> bool:
        """Another file has the name by now, or the first one has come."""
        try:
            there = self._path.stat()
        except OSError:
            return False
        if self._fd is None:
            return True
        mine = os.fstat(self._fd)
        return (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino)

    def _open(self) -> None:
        with contextlib.suppress(OSError):
            self._fd = safe_open.open_regular(self._path)
            self._at = 0
            self.seen = True

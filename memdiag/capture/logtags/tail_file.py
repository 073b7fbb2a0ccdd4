"""Reads a log while it is written: follows the file over rotation and truncation, splits lines."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from memdiag import safe_open

_AT_A_TIME = 1 << 20
# The part of an existing log that is searched for the current step and phase. Heuristic.
_TAIL_BYTES = 64 << 10
# The rest of a longer line is ignored: it has no tags. Heuristic.
LONGEST_LINE = 4096
_ENDS = re.compile(rb"[\r\n]+")
# Colors, cursor movements and window titles (ECMA-48: CSI, OSC, and the two-byte escapes).
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class Follower:
    """Reads the bytes that are added to the file of this name, also if it is replaced.

    An existing file is read from its end, a later one from its beginning.
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
        """The open descriptors."""
        return () if self._fd is None else (self._fd,)

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def read(self) -> Iterator[bytes]:
        """The bytes added since the last call. An empty piece means that a new file begins."""
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
        """Return True if the name has a new file, or its first one."""
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


class LineDecoder:
    """Joins pieces of a stream into lines. The `\\r` of a progress bar ends a line like `\\n`."""

    def __init__(self) -> None:
        self._rest = b""
        self._rest_at_s = 0.0

    def feed(self, at_s: float, data: bytes) -> Iterator[tuple[float, str]]:
        """The lines that `data`, received at `at_s`, completes: (time of its last byte, text)."""
        pieces = _ENDS.split(data)
        for number, piece in enumerate(pieces):
            if piece:
                self._rest = (self._rest + piece)[:LONGEST_LINE]
                self._rest_at_s = at_s
            if number < len(pieces) - 1:
                yield from self.flush()

    def flush(self) -> Iterator[tuple[float, str]]:
        """The line that has no end yet, if any."""
        if self._rest:
            line, self._rest = self._rest, b""
            yield self._rest_at_s, _clean(line)

    def forget(self) -> None:
        """Drop the unfinished line, because the next piece of the stream is missing."""
        self._rest = b""


def _clean(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return _ESCAPES.sub("", text) if "\x1b" in text else text

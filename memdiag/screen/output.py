"""The last lines of what the job writes, without what a terminal would act upon."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
from collections import deque
from collections.abc import Sequence

from memdiag.capture.launch.output_tee import FrameReader
from memdiag.values.sanitize import printable

_LINES = 200
_MOST_BYTES = 1 << 20  # taken at a time, of which the end is looked at: bounds the cost
_LOOKED_AT_BYTES = 32 << 10
_MOST_IN_LINE = 500
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colors, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)


class LastLines:
    """What was written last to one or two streams, whose copies are read from `descriptors`."""

    def __init__(self, descriptors: Sequence[int], *, ascii_only: bool = False) -> None:
        self._ascii_only = ascii_only
        self._open = {descriptor: _Stream() for descriptor in descriptors}
        self._lines: deque[str] = deque(maxlen=_LINES)
        for descriptor in descriptors:
            os.set_blocking(descriptor, False)

    def look(self) -> bool:
        """Read what is there. Returns True if there was anything."""
        found = False
        for descriptor, stream in tuple(self._open.items()):
            data, is_open = _read(descriptor)
            if not is_open:
                del self._open[descriptor]
            for line in stream.lines(data):
                self._lines.append(line)
            found = found or bool(data)
        return found

    def last(self, count: int) -> list[str]:
        """The last lines, printable, an unfinished one among them."""
        unfinished = [stream.rest for stream in self._open.values() if stream.rest]
        lines = [*self._lines, *unfinished][-count:] if count > 0 else []
        return [self._clean(line) for line in lines]

    def _clean(self, line: str) -> str:
        plain = _ESCAPES.sub("", line).rstrip("\r")
        shown = plain.rpartition("\r")[2]  # a progress bar overwrites its line
        return printable(shown.expandtabs(8)[:_MOST_IN_LINE], ascii_only=self._ascii_only)


class _Stream:
    """Splits one stream into lines. rest: the line that has not ended."""

    def __init__(self) -> None:
        self._frames = FrameReader()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.rest = ""

    def lines(self, data: bytes) -> list[str]:
        text = b"".join(piece for _, _, piece in self._frames.feed(data))
        if not text:
            return []
        *lines, rest = (self.rest + self._decoder.decode(text[-_LOOKED_AT_BYTES:])).split("\n")
        # Of an unfinished line, the part after the last carriage return is seen.
        self.rest = rest if len(rest) <= _MOST_IN_LINE else rest[-_MOST_IN_LINE:]
        return lines


def _read(descriptor: int) -> tuple[bytes, bool]:
    """What is there, and whether more may come."""
    data = b""
    try:
        while len(data) < _MOST_BYTES:
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                return data, False
            data += piece
    except BlockingIOError:
        pass
    except OSError:
        return data, False
    return data, True


class Said:
    """The messages of memdiag itself, which are in a file while the screen is shown."""

    def __init__(self, descriptor: int, *, ascii_only: bool = False) -> None:
        self._descriptor, self._ascii_only = descriptor, ascii_only
        self._size = 0
        self.latest = ""

    def look(self) -> bool:
        """Read what is new. Returns True if there was anything."""
        with contextlib.suppress(OSError):
            size = os.fstat(self._descriptor).st_size
            begin = self._size if size >= self._size else 0  # printed, and emptied
            self._size = size
            if text := os.pread(self._descriptor, min(size - begin, 4096), begin):
                lines = text.decode("utf-8", "replace").splitlines()
                last = lines[-1].removeprefix("memdiag: ")
                self.latest = printable(last, ascii_only=self._ascii_only)
                return True
        return False

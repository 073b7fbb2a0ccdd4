"""Bytes of a log or a terminal as clean lines: what a person would read, one update at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What comes after so many bytes of a line is not looked at: no tag stands there. Chosen.
LONGEST_LINE = 4096
_ENDS = re.compile(rb"[\r\n]+")
# Colours, cursor movements and window titles (ECMA-48: CSI, OSC, and the two-byte escapes).
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class Lines:
    """Puts pieces of a stream together. A progress bar's `\\r` ends a line like `\\n` does."""

    def __init__(self) -> None:
        self._rest = b""
        self._rest_at_s = 0.0

    def feed(self, at_s: float, data: bytes) -> Iterator[tuple[float, str]]:
        """The lines that `data`, come at `at_s`, completes: when their last byte came, and text."""
        pieces = _ENDS.split(data)
        for number, piece in enumerate(pieces):
            if piece:
                self._rest = (self._rest + piece)[:LONGEST_LINE]
                self._rest_at_s = at_s
            if number < len(pieces) - 1:
                yield from self.flush()

    def flush(self) -> Iterator[tuple[float, str]]:
        """What is there of a line without an end."""
        if self._rest:
            line, self._rest = self._rest, b""
            yield self._rest_at_s, _clean(line)

    def forget(self) -> None:
        """A piece of the stream is missing: what came before belongs to no line."""
        self._rest = b""


def _clean(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return _ESCAPES.sub("", text) if "\x1b" in text else text

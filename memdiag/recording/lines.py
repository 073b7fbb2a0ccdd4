"""A text of any size as lines, cleaned of what terminals and progress bars leave in it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from memdiag.recording.source import Source

# A line is looked at up to here: what matters stands in front, and a line may be a megabyte.
LINE_LIMIT = 2000
_CHUNK_BYTES = 8 << 20

_STAMP = (
    r"([0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"
    r"|(?:^|[\s\[(])[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?)"
)
_STAMP_HEAD = 48
_ESCAPES = r"\x1b\[[0-9;?]*[A-Za-z]"


def chunks(source: Source) -> Iterator[pl.DataFrame]:
    """Frames of `stamp` (date or time of day at the start of the line, null without one) and
    `line` (the rest), of at most some 8 MB of text each.
    """
    for block in _blocks(source):
        text = block.replace(b"\r", b"\n").decode("utf-8", errors="replace")
        lines = pl.Series("line", text.split("\n"), dtype=pl.String).str.head(LINE_LIMIT)
        if b"\x1b" in block:
            lines = lines.str.replace_all(_ESCAPES, "")
        head = lines.str.head(_STAMP_HEAD)
        stamp = head.str.extract(_STAMP, 1).str.strip_chars(" [(")
        if stamp.null_count() < len(stamp):
            lines = head.str.replace(_STAMP, " ") + lines.str.slice(_STAMP_HEAD)
        yield pl.DataFrame({"stamp": stamp, "line": lines})


def _blocks(source: Source) -> Iterator[bytes]:
    """The bytes, cut at the ends of lines where there are some."""
    if source.whole or source.path is None:
        content = source.content
        for start in range(0, len(content), _CHUNK_BYTES):  # a line across blocks is rare
            yield content[start : start + _CHUNK_BYTES]
        return
    with source.path.open("rb") as file:
        while block := file.read(_CHUNK_BYTES):
            yield block + file.readline(_CHUNK_BYTES)

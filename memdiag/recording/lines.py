"""A text of any size as lines, cleaned of what terminals and progress bars leave in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from memdiag.recording.rawlines import raw_lines
from memdiag.recording.source import Source

# A line is looked at up to here: what matters stands in front, and a line may be a megabyte.
LINE_LIMIT = 2000
_CHUNK_BYTES = 8 << 20

_STAMP = (
    r"([0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"
    r"|(?:^|[\s\[(])[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?)"
)
_STAMP_HEAD = 48
_IN_FRONT = re.compile(rf"^([\s\[(]{{0,3}}?){_STAMP}")
_LOOKED_AT = 20
_ESCAPES = r"\x1b\[[0-9;?]*[A-Za-z]"


def chunks(source: Source) -> Iterator[pl.DataFrame]:
    """Frames of `stamp` (date or time of day at the start of the line, null without one) and
    `line` (the rest), of at most some 8 MB of text each. Blank lines may be missing.
    """
    for block in _blocks(source):
        lines = _lines(block).str.head(LINE_LIMIT)
        if b"\x1b" in block:
            lines = lines.str.replace_all(_ESCAPES, "")
        yield _without_stamps(lines)


def _lines(block: bytes) -> pl.Series:
    text = block.replace(b"\r", b"\n").replace(b"\x01", b" ")
    try:
        return raw_lines(text).alias("line")
    except pl.exceptions.PolarsError:  # nothing but ends of lines, for one
        decoded = text.decode("utf-8", errors="replace")
        return pl.Series("line", decoded.split("\n"), dtype=pl.String)


def _without_stamps(lines: pl.Series) -> pl.DataFrame:
    """Loggers put the time at one place of all lines, in one form: then it is cut out there."""
    shape = _usual_stamp(lines)
    if shape is None:
        return _searched(lines)
    front, length, pattern = shape
    has_it = lines.str.contains(pattern)
    cut = pl.DataFrame(
        {
            "stamp": lines.str.slice(front, length),
            "line": lines.str.slice(front + length),
        }
    )
    if has_it.all():
        return cut
    return in_order(cut.filter(has_it), _searched(lines.filter(~has_it)), has_it)


def in_order(chosen: pl.DataFrame, others: pl.DataFrame, is_chosen: pl.Series) -> pl.DataFrame:
    """Rows that were treated apart, together again: `is_chosen` tells for each which it is of.

    A column that only one of them has is null in the other's rows.
    """
    place = pl.int_range(len(is_chosen), eager=True).alias("place")
    both = [
        chosen.with_columns(place.filter(is_chosen)),
        others.with_columns(place.filter(~is_chosen)),
    ]
    return pl.concat(both, how="diagonal").sort("place").drop("place")


def _usual_stamp(lines: pl.Series) -> tuple[int, int, str] | None:
    """Where the first lines have their time: characters before it, its length, and a pattern for
    lines that are alike; None where they have none, or not all at the beginning.
    """
    for line in lines.head(_LOOKED_AT).to_list():
        found = _IN_FRONT.match(line)
        if found is not None:
            stamp = found.group(2).lstrip(" \t[(")
            front = line.index(stamp)
            shape = re.sub("[0-9]", "[0-9]", re.escape(stamp))
            return front, len(stamp), rf"^[\s\[(]{{{front}}}{shape}(?:[^0-9.,]|[.,][^0-9]|$)"
    return None


def _searched(lines: pl.Series) -> pl.DataFrame:
    head = lines.str.head(_STAMP_HEAD)
    stamp = head.str.extract(_STAMP, 1).str.strip_chars(" [(")
    if stamp.null_count() < len(stamp):
        lines = head.str.replace(_STAMP, " ") + lines.str.slice(_STAMP_HEAD)
    return pl.DataFrame({"stamp": stamp, "line": lines.alias("line")})


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

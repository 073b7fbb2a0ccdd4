"""A text of any size as lines, cleaned of what terminals and progress bars leave in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memdiag.recording.inputs.paste_cleanup import without_escapes
from memdiag.recording.inputs.raw_lines import raw_lines
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl

# A line is looked at up to here: what matters stands in front, and a line may be a megabyte.
LINE_LIMIT = 2000
# What a log holds is understood on its first block. Of the others each is small enough for memory
# that was freed to be used again: to have pages anew takes longer than to read them.
_FIRST_BYTES, _BLOCK_BYTES = 4 << 20, 2 << 20

_STAMP = (
    r"([0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"
    r"|(?:^|[\s\[(])[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?)"
)
_STAMP_HEAD = 48
_IN_FRONT = re.compile(rf"^([\s\[(]{{0,3}}?){_STAMP}")
_LOOKED_AT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamped:
    """A line apart from its time.

    stamp: where in the line that was, None if there was none.
    line: the rest; from `joint` on it stood behind the stamp.
    """

    stamp: tuple[int, int] | None
    line: str
    joint: int = 0

    def before(self, begin: int, end: int) -> tuple[int, int]:
        """Where a piece of `line` stood before the time was taken out."""
        moved = self.stamp[1] - self.joint if self.stamp and begin >= self.joint else 0
        return begin + moved, end + moved


def split_stamp(line: str) -> Stamped:
    """What `chunks` makes of one line."""
    if (found := _IN_FRONT.match(line)) is not None:
        begin, end = found.span(2)
        begin += len(found.group(2)) - len(found.group(2).lstrip(" \t[("))
        return Stamped(stamp=(begin, end), line=line[end:])
    found = re.search(_STAMP, line[:_STAMP_HEAD])
    if found is None:
        return Stamped(stamp=None, line=line)
    begin, end = found.span()
    text = found.group().lstrip(" \t[(")
    rest = f"{line[:begin]} {line[end:]}"
    return Stamped(stamp=(end - len(text), end), line=rest, joint=begin + 1)


def chunks(source: Source) -> Iterator[pl.DataFrame]:
    """Frames of `stamp` (date or time of day at the start of the line, null without one) and
    `line` (the rest), of at most some 8 MB of text each. Blank lines may be missing.
    """
    return (stamped(block) for block in blocks(source))


def stamped(block: bytes) -> pl.DataFrame:
    """A block's lines, as `chunks` gives them."""
    return _without_stamps(_lines(block).str.head(LINE_LIMIT))


def blocks(source: Source) -> Iterator[bytes]:
    """The text in pieces, of whole lines each where those are not too long, without what only
    terminals need.
    """
    for block in _blocks(source):
        text = block.replace(b"\r", b"\n").replace(b"\x01", b" ")
        yield without_escapes(text)


def _lines(block: bytes) -> pl.Series:
    try:
        return raw_lines(block).alias("line")
    except OSError:  # a line that begins as packed files do
        return raw_lines(b"-\n" + block).slice(1).alias("line")
    except pl.exceptions.PolarsError:  # nothing but ends of lines, for one
        decoded = block.decode("utf-8", errors="replace")
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
    with source.opened() as file:
        size = _FIRST_BYTES
        while block := file.read(size):
            yield block + file.readline(size)
            size = _BLOCK_BYTES

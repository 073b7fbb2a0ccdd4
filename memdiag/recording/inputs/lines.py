"""A text of any size as lines, cleaned of what terminals and progress bars leave in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memdiag.recording.inputs.paste_cleanup import without_escapes
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl, raw_lines

# Only this much of a line is read: the values are at its beginning, and it may be a megabyte.
LINE_LIMIT = 2000
# The fields are found in the first block. The others are small enough that freed memory is used
# again: new pages take longer than reading.
_FIRST_BYTES, _BLOCK_BYTES = 4 << 20, 2 << 20

_HALF = r"(?:\s?[AaPp][Mm]\b)?"
# In `[17:05<3:10:38, ...` of a progress bar, the second time is what remains.
_STAMP = (
    r"([0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?"
    rf"|(?:^|[\s\[(])<?[0-9]{{1,2}}:[0-9]{{2}}:[0-9]{{2}}(?:[.,][0-9]+)?{_HALF})"
)
_STAMP_HEAD = 48
# Without seconds only at the start of a line: `09:05`, `[9:05 PM]`, `9pm`, `09h05`, `09.05 Uhr`, of
# an item of a list: `* 09:05 – 407 MB`, or behind who wrote it: `[Ann] [9:05 PM]`.
_CLOCK = (
    rf"[0-9]{{1,2}}[:h][0-9]{{2}}{_HALF}|[0-9]{{1,2}}[:.][0-9]{{2}} Uhr"
    r"|(?:1[0-2]|[1-9])\s?[AaPp][Mm]"
)
_BEFORE_CLOCK = r"\s{0,4}[*+•-]\s+|\[[^\]0-9]{1,24}\] ?\[|[\s\[(<]{0,3}"
_CLOCK_IN_FRONT = re.compile(rf"^({_BEFORE_CLOCK})({_CLOCK})(:?[\s\])>|,;–-]|:?$)")
# Behind who wrote what is below: `opsbot  9:00 AM`, `Ann Lee — Today at 9:05 PM`.
_CLOCK_BEHIND = re.compile(r"^([^0-9]{1,40}\s)([0-9]{1,2}:[0-9]{2}\s?[AaPp][Mm])(\s{0,4})$")
_IN_FRONT = re.compile(rf"^([\s\[(<]{{0,3}}?){_STAMP}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamped:
    """A line without its time.

    stamp: where the time was in the line, None if there was none.
    line: the rest; from `joint` on it followed the stamp.
    """

    stamp: tuple[int, int] | None
    line: str
    joint: int = 0

    def before(self, begin: int, end: int) -> tuple[int, int]:
        """Where a piece of `line` was before the time was removed."""
        moved = self.stamp[1] - self.joint if self.stamp and begin >= self.joint else 0
        return begin + moved, end + moved


def split_stamp(line: str) -> Stamped:
    """Split one line as `chunks` splits all."""
    if (found := _CLOCK_IN_FRONT.match(line) or _CLOCK_BEHIND.match(line)) is not None:
        return Stamped(stamp=found.span(2), line=line[found.end(2) :])
    if (found := _IN_FRONT.match(line)) is not None:
        begin, end = found.span(2)
        begin += len(found.group(2)) - len(found.group(2).lstrip(" \t[(<"))
        return Stamped(stamp=(begin, end), line=line[end:])
    found = re.search(_STAMP, line[:_STAMP_HEAD])
    if found is None:
        return Stamped(stamp=None, line=line)
    begin, end = found.span()
    text = found.group().lstrip(" \t[(<")
    rest = f"{line[:begin]} {line[end:]}"
    return Stamped(stamp=(end - len(text), end), line=rest, joint=begin + 1)


def chunks(source: Source) -> Iterator[pl.DataFrame]:
    """Frames of `stamp` (date or time of day near the start of the line, null without one), `line`
    (the rest) and `whole` (both), of at most about 8 MB of text each. Blank lines may be missing.
    """
    return (stamped(block) for block in blocks(source))


def stamped(block: bytes) -> pl.DataFrame:
    """A block's lines in the form of `chunks`."""
    return _without_stamps(_lines(block).str.head(LINE_LIMIT))


def blocks(source: Source) -> Iterator[bytes]:
    """The text in pieces of whole lines, if those are not too long, without terminal escapes."""
    for block in _blocks(source):
        text = block.replace(b"\r", b"\n").replace(b"\x01", b" ")
        yield without_escapes(text)


def _lines(block: bytes) -> pl.Series:
    try:
        return raw_lines(block).alias("line")
    except OSError:  # a line that begins like a compressed file
        return raw_lines(b"-\n" + block).slice(1).alias("line")
    except pl.exceptions.PolarsError:  # for example only line ends
        decoded = block.decode("utf-8", errors="replace")
        return pl.Series("line", decoded.split("\n"), dtype=pl.String)


def _without_stamps(lines: pl.Series) -> pl.DataFrame:
    """`split_stamp` for all lines at once."""
    whole, head = lines, lines.str.head(_STAMP_HEAD)
    in_front = head.str.extract(_CLOCK_IN_FRONT.pattern, 2)
    clock = in_front.fill_null(lines.str.extract(_CLOCK_BEHIND.pattern, 2))
    stamp = head.str.extract(_STAMP, 1).str.strip_chars(" [(<")
    stamp = clock.zip_with(clock.is_not_null(), stamp)
    if stamp.null_count() < len(stamp):
        elsewhere = head.str.replace(_STAMP, " ")
        cut = head.str.replace(_IN_FRONT.pattern, "").zip_with(
            head.str.contains(_IN_FRONT.pattern), elsewhere
        )
        behind = head.str.replace(_CLOCK_IN_FRONT.pattern, "${3}")
        behind = behind.str.replace(_CLOCK_BEHIND.pattern, "${3}")
        cut = behind.zip_with(clock.is_not_null(), cut)
        lines = cut + lines.str.slice(_STAMP_HEAD)
    return pl.DataFrame({"stamp": stamp, "line": lines, "whole": whole})


def _blocks(source: Source) -> Iterator[bytes]:
    """The bytes, cut at line ends if there are any."""
    with source.opened() as file:
        size = _FIRST_BYTES
        while block := file.read(size):
            yield block + file.readline(size)
            size = _BLOCK_BYTES

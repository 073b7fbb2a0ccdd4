"""Groups lines by their form: the line with each digit replaced by 0.

A trainer prints the same words around its numbers in many lines. In all lines of one form each
field's number is at the same place: one line is searched, and the numbers of all lines are cut out
there at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.inputs.lines import LINE_LIMIT, split_stamp
from memdiag.values import units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.recording.parsing.fast_digits import Bytes
    from memdiag.recording.textlog.discover_fields import Field
    from memdiag.values.measurements import Ints

_NEWLINE, _ZERO = ord("\n"), ord("0")
# Of equally long lines this many are searched for frequent forms.
_LOOKED_AT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Lines of one form.

    rows: their numbers in the block, shape (n,), ascending.
    form: the bytes of each with zeros for digits, with the line end.
    marks: their own bytes, shape (n, length).
    """

    rows: Ints
    form: bytes
    marks: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The lines of a block of text without empty ones.

    raw: its bytes, ending with a line.
    starts: where each line begins, shape (n,).
    lengths: of each line in bytes with its line end, shape (n,).
    """

    raw: bytes
    starts: Ints
    lengths: Ints

    def texts(self, rows: Ints) -> bytes:
        """The bytes of these lines."""
        if int(self.lengths[rows].sum()) == len(self.raw):
            return self.raw
        begins, ends = self.starts[rows], (self.starts + self.lengths)[rows]
        places = map(slice, begins.tolist(), ends.tolist())
        return b"".join(map(self.raw.__getitem__, places))

    def of(self, rows: Ints) -> Lines:
        """Only these lines."""
        return Lines(raw=self.raw, starts=self.starts[rows], lengths=self.lengths[rows])

    def line(self, row: int) -> bytes:
        """One line without its line end."""
        start = int(self.starts[row])
        return self.raw[start : start + int(self.lengths[row]) - 1]

    def zeroed(self) -> bytes:
        """All bytes with 0 for each digit."""
        return _zeroed(np.frombuffer(self.raw, dtype=np.uint8)).tobytes()

    def alike(self, least: int) -> Iterator[Alike]:
        """Groups of at least `least` lines of one form; lines longer than the limit are in none."""
        lengths = np.minimum(self.lengths, LINE_LIMIT + 1).astype(np.uint16)
        order = np.argsort(lengths, kind="stable")  # (numpy sorts uint16 fastest)
        ends = np.cumsum(np.bincount(lengths, minlength=LINE_LIMIT + 2))
        for length in 2 + np.flatnonzero(np.diff(ends[1 : LINE_LIMIT + 1]) >= least):
            rows = order[ends[length - 1] : ends[length]]
            yield from _of_one_form(rows, self._marks(rows, int(length)), least)

    def _marks(self, rows: Ints, length: int) -> Bytes:
        """The bytes of equally long lines."""
        text = np.frombuffer(self.raw, dtype=np.uint8)
        begin, last = int(self.starts[rows[0]]), int(self.starts[rows[-1]])
        if last - begin == (len(rows) - 1) * length:  # without a copy
            return text[begin : last + length].reshape(-1, length)
        windows = np.lib.stride_tricks.sliding_window_view(text, length)
        return windows[self.starts[rows]]


def lines_of(block: bytes) -> Lines:
    """The lines of a block of text."""
    raw = block if block.endswith(b"\n") else block + b"\n"
    ends = np.flatnonzero(np.frombuffer(raw, dtype=np.uint8) == _NEWLINE) + 1
    starts = np.concatenate(([0], ends[:-1]))
    lengths = ends - starts
    is_filled = lengths > 1
    if is_filled.all():
        return Lines(raw=raw, starts=starts, lengths=lengths)
    return Lines(raw=raw, starts=starts[is_filled], lengths=lengths[is_filled])


def _of_one_form(rows: Ints, marks: Bytes, least: int) -> Iterator[Alike]:
    """Groups of equally long lines that differ only in their digits."""
    left = np.arange(len(marks))
    for form in _frequent(marks):
        is_it = _are_of(form, marks if len(left) == len(marks) else marks[left])
        here = left if is_it.all() else left[is_it.all(axis=1)]
        if len(here) >= least:
            those = marks if len(here) == len(marks) else marks[here]
            yield Alike(rows=rows[here], form=form.tobytes(), marks=those)
        left = np.setdiff1d(left, here, assume_unique=True) if len(here) < len(left) else left[:0]
        if len(left) < least:
            return
    numbers = _Numbered()
    codes = np.array([numbers[form] for form in _texts(_zeroed(marks[left]))])
    order = left[np.argsort(codes, kind="stable")]
    counts = np.bincount(codes)
    texts, ends = list(numbers), np.cumsum(counts)
    for code in np.flatnonzero(counts >= least).tolist():
        here = order[ends[code] - counts[code] : ends[code]]
        yield Alike(rows=rows[here], form=texts[code], marks=marks[here])


def _are_of(form: Bytes, marks: Bytes) -> NDArray[np.bool_]:
    """For each byte whether it matches the form: a digit where that has a 0."""
    most = np.where(form == _ZERO, np.uint8(9), np.uint8(0))
    is_it: NDArray[np.bool_] = marks - form <= most
    return is_it


def _frequent(marks: Bytes) -> Iterator[Bytes]:
    """Forms that several lines of a sample have, the most frequent first."""
    looked_at = Counter(_texts(_zeroed(marks[:: len(marks) // _LOOKED_AT + 1])))
    for text, count in looked_at.most_common(_LOOKED_AT // 4):
        if count > 1:
            yield np.frombuffer(text, dtype=np.uint8)


def _texts(marks: Bytes) -> list[bytes]:
    raw, length = marks.tobytes(), marks.shape[1]
    return [raw[at : at + length] for at in range(0, len(raw), length)]


def _zeroed(marks: Bytes) -> Bytes:
    """A copy with 0 for each digit: minus its distance from 0."""
    above = marks - _ZERO
    above *= (above < 10).view(np.uint8)
    return np.subtract(marks, above, out=above)


class _Numbered(dict[bytes, int]):
    """Numbers its keys in the order of their first use."""

    def __missing__(self, key: bytes) -> int:
        number = self[key] = len(self)
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A piece of each line of a form: its place in bytes, and its text in one of them."""

    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to cut out of the lines of one form.

    numbers: index of the field, place of its number, and bytes per unit after it, or 1.
    tags: by name.
    """

    stamp: Cut | None
    numbers: tuple[tuple[int, Cut, float], ...]
    tags: Mapping[str, Cut]


def plan(
    raw: bytes, fields: Sequence[Field], tags: Mapping[str, Sequence[str]], heading: str
) -> Plan | None:
    """The plan for all lines of this line's form; None if they must be searched one by one.

    tags: patterns whose first group is the tag, by its name; the first match counts,
        unless that group is empty.
    heading: pattern of lines without numbers that are read too.
    """
    whole = raw.decode("utf-8", errors="replace")[:LINE_LIMIT]
    stamped = split_stamp(whole)
    if "\ufffd" in whole or any(f.alike and re.search(f.alike, stamped.line) for f in fields):
        return None
    is_empty = not re.search("[0-9]", stamped.line) and not re.search(heading, stamped.line)
    if is_empty and stamped.stamp is None:
        return Plan(stamp=None, numbers=(), tags={})

    def cut(begin: int, end: int) -> Cut:
        text = whole[begin:end]
        at = begin if whole.isascii() else len(whole[:begin].encode())
        return Cut(begin=at, end=at + len(text.encode()), text=text)

    numbers = []
    for number, field in enumerate(fields):
        if (found := field.find(stamped.line)) is not None:
            place, unit = found
            factor = float(units.bytes_per_unit(unit) or 1)
            numbers.append((number, cut(*stamped.before(*place)), factor))
    named = {}
    for name, patterns in tags.items():
        hits = (re.search(pattern, stamped.line) for pattern in patterns)
        hit = next((hit for hit in hits if hit is not None and hit[1] is not None), None)
        if hit is not None:
            named[name] = cut(*stamped.before(*hit.span(1)))
    stamp = None if stamped.stamp is None else cut(*stamped.stamp)
    return Plan(stamp=stamp, numbers=tuple(numbers), tags=named)

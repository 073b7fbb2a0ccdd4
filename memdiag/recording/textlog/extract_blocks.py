"""The figures of a log, block by block: of lines that are alike at once, of others by search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.inputs.lines import stamped
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part
from memdiag.recording.parsing.fast_digits import figures_of
from memdiag.recording.parsing.timestamps import moments, moments_of_marks
from memdiag.recording.textlog.line_templates import Alike, Lines, Plan, plan
from memdiag.recording.textlog.minmax_decimation import spared
from memdiag.recording.textlog.search_lines import CARRIED, HEADING, TAGS, search

if TYPE_CHECKING:
    from memdiag.recording.parsing.fast_digits import Bytes
    from memdiag.recording.textlog.discover_fields import Field
    from memdiag.values.measurements import Floats, Ints

# Of fewer lines of one form in a block it is quicker to search each, where many are left.
LINES_ALIKE = 24
_FEW = 100
_PLANS_AT_MOST = 20_000
# What is held of a log: so many lines of figures, then those with the extremes.
ROWS_AT_MOST = 1 << 20
# Lines of so many different phases or processes are then told apart.
_TAGS_KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the lines of a block hold; lines that hold nothing are left out.

    figures: of each field, shape (fields, n), NaN where a line has none.
    stamps: shape (n,), as `clocks.moments`.
    tags: of `TAGS` the number among all that were seen, shape (n,); -1 for none. Those that no
        line has are left out.
    """

    figures: Floats
    stamps: Floats
    tags: dict[str, Ints]

    def tag(self, name: str) -> Ints:
        """That tag of each line, to be written to."""
        if name not in self.tags:
            self.tags[name] = np.full(len(self.stamps), -1)
        return self.tags[name]

    def of(self, rows: Ints) -> Found:
        """What these lines hold."""
        return Found(
            figures=self.figures[:, rows],
            stamps=self.stamps[rows],
            tags={name: codes[rows] for name, codes in self.tags.items()},
        )


def _together(parts: Sequence[Found]) -> Found:
    names = dict.fromkeys(name for part in parts for name in part.tags)
    return Found(
        figures=np.concatenate([part.figures for part in parts], axis=1),
        stamps=np.concatenate([part.stamps for part in parts]),
        tags={name: np.concatenate([part.tag(name) for part in parts]) for name in names},
    )


def _nothing(fields: int, lines: int) -> Found:
    return Found(
        figures=np.full((fields, lines), np.nan),
        stamps=np.full(lines, np.nan),
        tags={},
    )


class Gatherer:
    """Gathers what `fields` find.

    lines_alike: so many lines of one form are read at once.
    rows_at_most: so many lines with figures are held; of more, `spared` says which stay.
    coarseness: how often that was done.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        lines_alike: int = LINES_ALIKE,
        rows_at_most: int = ROWS_AT_MOST,
    ) -> None:
        self.fields = fields
        self._lines_alike = lines_alike
        self._plans: dict[bytes, Plan | None] = {}
        self._seen: dict[str, dict[str, int]] = {name: {} for name in TAGS}
        self._parts: list[Found] = []
        self._rows_at_most = rows_at_most
        self._rows = 0
        self._last: dict[str, int] = {}
        self.coarseness = 0

    def read(self, lines: Lines) -> None:
        """Takes what these lines hold."""
        found = _nothing(len(self.fields), len(lines.starts))
        left = self._cut_alike(lines, np.arange(len(lines.starts)), self._lines_alike, found)
        if 0 < len(left) <= _FEW and self._lines_alike <= _FEW:
            left = self._cut_alike(lines.of(left), left, 1, found)
        if len(left):
            self._search(lines, left, found)
        holds = np.isfinite(found.figures).any(axis=0)
        for codes in found.tags.values():
            holds |= codes >= 0
        self._add(found if holds.all() else found.of(np.flatnonzero(holds)))

    def _cut_alike(self, lines: Lines, rows: Ints, least: int, found: Found) -> Ints:
        """Takes what lines hold of which there are so many of one form; the rows of the others.

        rows: of each of the lines, in `found`.
        """
        left = np.ones(len(rows), dtype=bool)
        for alike in lines.alike(least):
            if (how := self._plan(alike)) is not None:
                left[alike.rows] = False
                self._cut(alike.marks, rows[alike.rows], how, found)
        return rows[left]

    def _add(self, found: Found) -> None:
        self._carry(found)
        if self.coarseness:
            found = self._spared(found, self.coarseness)
        self._parts.append(found)
        self._rows += len(found.stamps)
        if self._rows > self._rows_at_most:
            self._parts = [self._spared(self.gathered(), 1)]
            self._rows = len(self._parts[0].stamps)
            self.coarseness += 1

    def _carry(self, found: Found) -> None:
        """Phases and processes that a line names hold for the lines below it."""
        for name in CARRIED & self._seen.keys():
            if not self._seen[name]:
                continue
            codes = np.concatenate(([self._last.get(name, -1)], found.tag(name)))
            named = np.maximum.accumulate(np.where(codes >= 0, np.arange(len(codes)), 0))
            found.tags[name] = codes[named][1:]
            self._last[name] = int(codes[named[-1]])

    def _spared(self, found: Found, coarseness: int) -> Found:
        is_metric = np.array([field.meaning.part is Part.METRIC for field in self.fields])
        figures = found.figures
        tags = [found.tag(name) for name, seen in self._seen.items() if 0 < len(seen) <= _TAGS_KEPT]
        return found.of(spared(figures[is_metric], figures[~is_metric], tags, coarseness))

    def gathered(self) -> Found:
        """All that was taken. Once only: it is given away."""
        parts, self._parts = self._parts, []
        return _together(parts)

    def tags(self, name: str, codes: Ints) -> pl.Series:
        """Tags by their numbers in `gathered`."""
        named = pl.Series(name, list(self._seen[name]), dtype=pl.String)
        return named.gather(pl.Series(codes).replace(-1, None))

    def _plan(self, alike: Alike) -> Plan | None:
        if alike.form not in self._plans:
            if len(self._plans) >= _PLANS_AT_MOST:
                self._plans.clear()
            line = alike.marks[0, :-1].tobytes()
            self._plans[alike.form] = plan(line, self.fields, TAGS, HEADING)
        return self._plans[alike.form]

    def _cut(self, marks: Bytes, rows: Ints, how: Plan, found: Found) -> None:
        for number, cut, factor in how.figures:
            figures = figures_of(marks[:, cut.begin : cut.end], cut.text)
            found.figures[number, rows] = figures * factor
        if how.stamp is not None and (how.figures or how.tags):
            cut = how.stamp
            found.stamps[rows] = moments_of_marks(marks[:, cut.begin : cut.end], cut.text)
        for name, cut in how.tags.items():
            found.tag(name)[rows] = self._codes(name, marks[:, cut.begin : cut.end], cut.text)

    def _codes(self, name: str, marks: Bytes, text: str) -> Ints | int:
        if not any(mark.isdigit() for mark in text):
            return self._code(name, text)
        texts = np.ascontiguousarray(marks).view(f"S{marks.shape[1]}").ravel()
        different, which = np.unique(texts, return_inverse=True)
        codes: Ints = np.array([self._code(name, text.decode()) for text in different.tolist()])
        return codes[which]

    def _code(self, name: str, tag: str) -> int:
        seen = self._seen[name]
        return seen.setdefault(tag, len(seen))

    def _search(self, lines: Lines, rows: Ints, found: Found) -> None:
        texts = stamped(lines.texts(rows))
        told = texts["line"].str.contains("[0-9]") | texts["line"].str.contains(HEADING)
        texts, rows = texts.filter(told), rows[told.to_numpy()]
        searched = search(texts, self.fields)
        for number in range(len(self.fields)):
            found.figures[number, rows] = searched[f"field {number}"].to_numpy()
        if searched["stamp"].null_count() < len(rows):
            found.stamps[rows] = moments(searched["stamp"])
        for name in TAGS:
            if name in searched.columns:
                different = searched[name].drop_nulls().unique(maintain_order=True).to_list()
                codes = {tag: self._code(name, tag) for tag in different}
                column = searched[name].replace_strict(codes, default=-1, return_dtype=pl.Int64)
                found.tag(name)[rows] = column.to_numpy()

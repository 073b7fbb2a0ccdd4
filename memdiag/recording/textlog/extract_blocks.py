"""Extracts the numbers of a log block by block: of similar lines at once, of others by search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.inputs.lines import stamped
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part
from memdiag.recording.parsing.fast_digits import numbers_of
from memdiag.recording.parsing.timestamps import moments_of_marks, moments_of_stamps
from memdiag.recording.textlog.line_templates import Alike, Lines, Plan, plan
from memdiag.recording.textlog.minmax_decimation import decimated
from memdiag.recording.textlog.search_lines import CARRIED, HEADING, TAGS, search

if TYPE_CHECKING:
    from memdiag.recording.parsing.fast_digits import Bytes
    from memdiag.recording.textlog.discover_fields import Field
    from memdiag.values.measurements import Floats, Ints

# With fewer lines of one form in a block, searching each of them is faster if many are left.
LINES_ALIKE = 24
_FEW = 100
_PLANS_AT_MOST = 20_000
# This many lines with numbers are kept in memory, then only those with the extremes.
ROWS_AT_MOST = 1 << 20
# This many different phases or processes are then kept apart.
_TAGS_KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The content of a block's lines, without empty lines.

    values: of each field, shape (fields, n), NaN where a line has none.
    stamps: shape (n,), in seconds as from `moments`.
    tags: for each name in `TAGS` the code of the tag, shape (n,); -1 for none. Names without any
        tag are left out.
    """

    values: Floats
    stamps: Floats
    tags: dict[str, Ints]

    def tag(self, name: str) -> Ints:
        """The codes of this tag for each line, to be written to."""
        if name not in self.tags:
            self.tags[name] = np.full(len(self.stamps), -1)
        return self.tags[name]

    def of(self, rows: Ints) -> Found:
        """The content of these lines."""
        return Found(
            values=self.values[:, rows],
            stamps=self.stamps[rows],
            tags={name: codes[rows] for name, codes in self.tags.items()},
        )


def _joined(parts: Sequence[Found]) -> Found:
    names = dict.fromkeys(name for part in parts for name in part.tags)
    return Found(
        values=np.concatenate([part.values for part in parts], axis=1),
        stamps=np.concatenate([part.stamps for part in parts]),
        tags={name: np.concatenate([part.tag(name) for part in parts]) for name in names},
    )


def _nothing(fields: int, lines: int) -> Found:
    return Found(
        values=np.full((fields, lines), np.nan),
        stamps=np.full(lines, np.nan),
        tags={},
    )


class Collector:
    """Collects the numbers and tags of a log.

    lines_alike: at least this many lines of one form are read at once.
    rows_at_most: this many lines with numbers are kept; of more, `decimated` keeps some.
    carries_stamps: readings have no time in their lines: one on a line above applies to them.
    coarseness: how often the lines were decimated.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        lines_alike: int = LINES_ALIKE,
        rows_at_most: int = ROWS_AT_MOST,
        *,
        carries_stamps: bool = False,
    ) -> None:
        self.fields = fields
        self.carries_stamps = carries_stamps
        self._last_stamp = np.nan
        self._lines_alike = lines_alike
        self._plans: dict[bytes, Plan | None] = {}
        self._seen: dict[str, dict[str, int]] = {name: {} for name in TAGS}
        self._parts: list[Found] = []
        self._rows_at_most = rows_at_most
        self._rows = 0
        self._last: dict[str, int] = {}
        self._is_metric = np.array([field.meaning.part is Part.METRIC for field in fields])
        self._pid_leads: bool | None = None
        self.coarseness = 0

    def read(self, lines: Lines) -> None:
        """Collect the content of these lines."""
        found = _nothing(len(self.fields), len(lines.starts))
        left = self._cut_alike(lines, np.arange(len(lines.starts)), self._lines_alike, found)
        if 0 < len(left) <= _FEW and self._lines_alike <= _FEW:
            left = self._cut_alike(lines.of(left), left, 1, found)
        if len(left):
            self._search(lines, left, found)
        if self.carries_stamps:
            self._carry_stamps(found.stamps)
        holds = np.isfinite(found.values).any(axis=0)
        for codes in found.tags.values():
            holds |= codes >= 0
        self._add(found if holds.all() else found.of(np.flatnonzero(holds)))

    def _cut_alike(self, lines: Lines, rows: Ints, least: int, found: Found) -> Ints:
        """Collect the content of forms with at least this many lines; return the other rows.

        rows: the row of each line in `found`.
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
            found = self._decimated(found, self.coarseness)
        self._parts.append(found)
        self._rows += len(found.stamps)
        if self._rows > self._rows_at_most:
            # (One by one: a copy of all would be the most memory that reading takes.)
            self._parts = [self._decimated(part, 1) for part in self._parts]
            self._rows = sum(len(part.stamps) for part in self._parts)
            self.coarseness += 1

    def _carry_stamps(self, stamps: Floats) -> None:
        known = carried_on(np.concatenate(([self._last_stamp], stamps)))
        stamps[:], self._last_stamp = known[1:], float(known[-1])

    def _carry(self, found: Found) -> None:
        """A phase or process named by a line also applies to the lines below it."""
        carries_pid = self._carries_pid(found)
        for name in CARRIED & self._seen.keys():
            if all(tag.lower().startswith("total") for tag in self._seen[name]):
                continue  # none, or `Total:` of something else than devices
            if name == "pid" and not carries_pid:
                continue
            codes = np.concatenate(([self._last.get(name, -1)], found.tag(name)))
            named = np.maximum.accumulate(np.where(codes >= 0, np.arange(len(codes)), 0))
            found.tags[name] = codes[named][1:]
            self._last[name] = int(codes[named[-1]])

    def _carries_pid(self, found: Found) -> bool:
        """Return True unless readings come before the first pid: the log then only mentions other
        processes.
        """
        if self._pid_leads is None:
            has_reading = np.isfinite(found.values[self._is_metric]).any(axis=0)
            has_pid = found.tags.get("pid", np.full(len(has_reading), -1)) >= 0
            first = np.flatnonzero(has_reading | has_pid)[:1]
            self._pid_leads = bool(has_pid[first[0]]) if first.size else None
        return self._pid_leads is not False

    def _decimated(self, found: Found, coarseness: int) -> Found:
        values, is_metric = found.values, self._is_metric
        tags = [found.tag(name) for name, seen in self._seen.items() if 0 < len(seen) <= _TAGS_KEPT]
        return found.of(decimated(values[is_metric], values[~is_metric], tags, coarseness))

    def collected(self) -> Found:
        """All content. To be called once: the collection is then empty."""
        parts, self._parts = self._parts, []
        return _joined(parts)

    def tags(self, name: str, codes: Ints) -> pl.Series:
        """Tags by their codes in `collected`."""
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
        for number, cut, factor in how.numbers:
            numbers = numbers_of(marks[:, cut.begin : cut.end], cut.text)
            found.values[number, rows] = numbers * factor
        if how.stamp is not None and (how.numbers or how.tags or self.carries_stamps):
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
        relevant = texts["line"].str.contains("[0-9]") | texts["line"].str.contains(HEADING)
        relevant |= texts["stamp"].is_not_null()
        texts, rows = texts.filter(relevant), rows[relevant.to_numpy()]
        searched = search(texts, self.fields)
        for number in range(len(self.fields)):
            found.values[number, rows] = searched[f"field {number}"].to_numpy()
        if searched["stamp"].null_count() < len(rows):
            found.stamps[rows] = moments_of_stamps(searched["stamp"])
        for name in TAGS:
            if name in searched.columns:
                different = searched[name].drop_nulls().unique(maintain_order=True).to_list()
                codes = {tag: self._code(name, tag) for tag in different}
                column = searched[name].replace_strict(codes, default=-1, return_dtype=pl.Int64)
                found.tag(name)[rows] = column.to_numpy()


def carried_on(values: Floats) -> Floats:
    """Each missing value as the last known one before it."""
    return values[np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(values))))]

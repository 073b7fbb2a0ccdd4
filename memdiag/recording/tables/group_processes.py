"""Separates the rows of several processes, and numbers the restarts of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.lazy_polars import pl
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats, Ints

# All rows of a table with a single process, without an array of their numbers.
WHOLE = slice(None)
# Lines of several processes may be torn or lost at some positions. Heuristic.
_USUAL = 0.75
_POSITIONS_AT_LEAST = 8
_AT_ONCE = 0.25  # of the time of a step
# Readings of one process, with noise, differ from the one before by up to 0.9 times the root of
# their number in a step, compared with the readings of their size in the step before. Measured for
# normal noise; those of different processes by any number of times. Heuristic.
_AS_CLOSE = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The rows of one process.

    label: "" if the table has only one process.
    rows: row numbers, shape (n,), ascending; WHOLE for all rows of the table.
    generation: shape (n,), or None if it never restarted.
    """

    label: str
    rows: Ints | slice
    generation: Ints | None = None


def split(
    length: int,
    labels: Sequence[tuple[str, pl.Series]],
    pid: pl.Series | None,
    generation: pl.Series | None,
) -> list[Group]:
    """One group per process, in order of appearance.

    labels: (column name, column) that distinguish processes, joined to one label.
    pid: pids that overlap in time are processes, pids that follow each other are restarts.
    generation: counts restarts; pids are then ignored.
    """
    names, parts = _by_label(length, labels)
    groups: list[Group] = []
    for name, rows in zip(names, parts, strict=True):
        if generation is not None:
            codes, _ = encode(_of(generation, rows))
            groups.append(Group(label=name, rows=rows, generation=_changes(codes)))
        elif pid is not None:
            groups.extend(_by_pid(name, rows, _of(pid, rows)))
        else:
            groups.append(Group(label=name, rows=rows))
    return groups


def _of(column: pl.Series, rows: Ints | slice) -> pl.Series:
    return column if isinstance(rows, slice) else column.gather(rows)


def _by_label(
    length: int, labels: Sequence[tuple[str, pl.Series]]
) -> tuple[list[str], Sequence[Ints | slice]]:
    texts = [text for name, column in labels if (text := _label(name, column)) is not None]
    if not texts or not length:
        return [""], [WHOLE]
    joined = texts[0]
    for text in texts[1:]:
        joined = joined + " " + text
    codes, values = encode(joined)
    names = [printable(value.strip()) for value in values]
    return names, [WHOLE] if len(names) == 1 else _rows_of(codes, len(names))


def _label(name: str, column: pl.Series) -> pl.Series | None:
    """The column as labels, None if it distinguishes nothing: bare numbers that never change.

    Bare digits are shown with the name of their column: "rank 0".
    """
    text: pl.Series = column.cast(pl.String).str.strip_chars().fill_null("")
    if not bool(text.str.contains("^[0-9]*$").all()):
        return text
    # Rows without a rank are of all ranks, or of the first.
    if text.filter(text != "").n_unique() <= 1:
        return None
    labelled: pl.Series = f"{name} " + text if name else text
    named: pl.Series = labelled.zip_with(text != "", text)
    return named


def _by_pid(label: str, rows: Ints | slice, pids: pl.Series) -> list[Group]:
    codes, values = encode(pids.cast(pl.String).str.strip_chars().fill_null(""))
    if len(values) == 1:
        return [Group(label=label, rows=rows)]
    parts = _rows_of(codes, len(values))
    ends = [part[-1] for part in parts]
    listed = len(pids) == len(values)  # each pid once: the processes of one moment
    if not listed and all(part[0] > end for part, end in zip(parts[1:], ends, strict=False)):
        return [Group(label=label, rows=rows, generation=_changes(codes))]
    prefix = f"{label} " if label else ""
    return [
        Group(
            label=f"{prefix}pid {printable(value)}",
            rows=part if isinstance(rows, slice) else rows[part],
        )
        for value, part in zip(values, parts, strict=True)
    ]


def split_repeated(x: Floats, y: Floats, at_s: Floats | None) -> list[Ints]:
    """Processes that write the same lines without a name, such as the ranks of a training: the rows
    by the size of their reading at each position. [] unless nearly all positions have as many rows,
    close together: a monitor reads one process several times in a step.

    x: positions, shape (n,). y: readings, shape (n,). at_s: seconds, shape (n,), None if unknown.
    """
    if bool((x[1:] > x[:-1]).all()):
        return []  # a reading at each position, as in most recordings
    rows = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    order = rows[np.lexsort((y[rows], x[rows]))]
    positions, starts, counts = np.unique(x[order], return_index=True, return_counts=True)
    if len(positions) < _POSITIONS_AT_LEAST:
        return []
    count = int(np.median(counts))
    spans = np.maximum.reduceat(order, starts) - np.minimum.reduceat(order, starts)
    usual = (counts == count) & (spans < 2 * count)
    if count < 2 or usual.mean() < _USUAL or not _at_once(at_s, order, starts):
        return []
    first = starts[usual]
    return [np.sort(order[first + at]) for at in range(count)]


def follow_each_other(y: Floats, parts: Sequence[Ints]) -> bool:
    """Return True if readings differ from the one before about as little as from the one of their
    size in the step before, as those of one process that writes several lines a step do.

    parts: the rows of each size.
    """
    moves = _mean_move(y[np.sort(np.concatenate(parts))])
    apart = float(np.mean([_mean_move(y[part]) for part in parts]))
    return moves <= _AS_CLOSE * math.sqrt(len(parts)) * apart


def _mean_move(y: Floats) -> float:
    known = y[np.isfinite(y)]
    return float(np.abs(np.diff(known)).mean()) if known.size > 1 else 0.0


def _at_once(at_s: Floats | None, order: Ints, starts: Ints) -> bool:
    """Return True if the rows of a position are closer in time than the positions."""
    if at_s is None or np.isnan(times := at_s[order]).any():
        return True
    first, last = np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)
    return bool(np.median(last - first) <= _AT_ONCE * np.median(np.diff(first)))


def encode(column: pl.Series) -> tuple[Ints, list[str]]:
    """Each row's value as a number in order of appearance, and the values."""
    values = column.unique(maintain_order=True)
    if len(values) == 1:
        return np.zeros(len(column), dtype=np.int64), [str(values[0])]
    codes = column.replace_strict(
        values, pl.int_range(len(values), eager=True), return_dtype=pl.Int64
    )
    return codes.to_numpy(), [str(value) for value in values.to_list()]


def _rows_of(codes: Ints, count: int) -> list[Ints]:
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(1, count)))


def _changes(codes: Ints) -> Ints | None:
    """0, 1, 2 ... stepping wherever the code changes."""
    steps = np.concatenate(([0], np.cumsum(np.diff(codes) != 0))).astype(np.int64)
    return steps if steps[-1] > 0 else None

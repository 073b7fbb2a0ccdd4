"""Tables that a command has printed in a loop, each below a line with the time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.inputs.lines import split_stamp, stamped
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.timestamps import moments_of_stamps, since_first
from memdiag.values.measurements import AxisKind

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats

_TIME, _PROCESS = "timestamp", "process"
_OF_ROWS = frozenset({AxisKind.SECONDS, AxisKind.STEP, AxisKind.EPOCH})
_LONGEST_DATE = 80
# Beside the time of day: `Sat Jun  1 ... UTC 2024`, `== ... ==`.
_REST_OF_DATE = re.compile(
    r"[\W_]*(?:(?:[A-Z][a-z]{2,8}|[A-Z]{2,5}|20[0-9]{2}|[0-9]{1,2})[\W_]*){0,6}"
)
_SINCE_1970 = r"^\W*(1[0-9]{9}(?:\.[0-9]{1,9})?)\W*$"


def is_date(line: str) -> bool:
    """Return True for a line with a time, perhaps with its date, and nothing else."""
    if len(line) > _LONGEST_DATE:
        return False
    split = split_stamp(line)
    is_clock = split.stamp is not None and _REST_OF_DATE.fullmatch(split.line) is not None
    return is_clock or bool(seconds_alone(line))


def seconds_alone(line: str) -> str:
    """The seconds since 1970 of a line with nothing else, as `date +%s` prints them, or ""."""
    found = re.search(_SINCE_1970, line[:_LONGEST_DATE])
    return "" if found is None else found[1]


def with_dates_between(
    frame: pl.DataFrame, names: tuple[str, ...], above: list[str], *, is_loop: bool = False
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows below lines with a time, with that in a last column, and the names of the columns:
    the first one is that of the process if it differs in all rows of a time. The rows of a loop
    that have times or steps themselves get no other. Unchanged if other rows have times, or if
    something else stands between them; what a loop says beside its tables is left out.

    frame: with null for each cell that a line does not have. above: the lines above the header.
    is_loop: the header comes again.
    """
    axes = {recognise(name).axis for name in names}
    if frame.width < 2 or (AxisKind.SECONDS in axes and not is_loop):
        return frame, names
    first, *others = frame.get_columns()
    if first.dtype != pl.String or not all(column.has_nulls() for column in others):
        return frame, names
    between = frame.select(alone=pl.all_horizontal(pl.exclude(first.name).is_null()))["alone"]
    if not between.any():
        return frame, names
    before, inside = _times(above), _times(first.filter(between).fill_null("").to_list())
    are_known = np.isfinite(inside).any() if is_loop else np.isfinite(inside).all()
    if not are_known or not np.isfinite(before).any():
        return frame, names
    rows = frame.filter(~between)
    if is_loop and not axes.isdisjoint(_OF_ROWS):
        return rows, names
    at, what = _carried(between, before, inside).filter(~between), rows.to_series(0)
    pairs = pl.DataFrame([at, what.alias(_PROCESS)])
    differs = at.n_unique() < len(at) == pairs.n_unique()
    is_named = recognise(names[0]).part in {Part.LABEL, Part.PID}
    label = _PROCESS if differs and not is_named else names[0]
    return rows.with_columns(at), (label, *names[1:], _TIME)


def _times(lines: list[str]) -> Floats:
    """The seconds of the times in some lines, NaN without one."""
    found = stamped("\n".join(line.strip() or "-" for line in lines).encode())
    since_1970 = found["whole"].str.extract(_SINCE_1970, 1).cast(pl.Float64)
    seconds = moments_of_stamps(found["stamp"])
    return np.where(np.isfinite(seconds), seconds, since_1970.to_numpy())


def _carried(between: pl.Series, before: Floats, inside: Floats) -> pl.Series:
    """For each line the seconds of the last time, since the first one.

    between: the lines that may have one. before: the times above these lines. inside: in them.
    """
    last = before[np.isfinite(before)][-1]
    seconds = since_first(np.concatenate(([last], inside)))
    times = pl.Series(_TIME, [None], dtype=pl.Float64).new_from_index(0, len(between))
    times = times.scatter(between.arg_true(), pl.Series(seconds[1:], nan_to_null=True))
    filled: pl.Series = times.fill_null(strategy="forward").fill_null(seconds[0])
    return filled

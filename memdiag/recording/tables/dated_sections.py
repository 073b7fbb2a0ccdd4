"""Tables that a command has printed in a loop, each below a line with the time."""

from __future__ import annotations

from memdiag.recording.inputs.lines import stamped
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.values.measurements import AxisKind

_TIME, _PROCESS = "timestamp", "process"


def with_dates_between(
    frame: pl.DataFrame, names: tuple[str, ...], above: list[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows below lines with a time, with that in a last column, and the names of the columns:
    the first one is that of the process if it differs in all rows of a time. Unchanged if the rows
    have times themselves, or other lines are between them.

    frame: with null for each cell that a line does not have. above: the lines above the header.
    """
    if frame.width < 2 or any(recognise(name).axis is AxisKind.SECONDS for name in names):
        return frame, names
    first, *others = frame.get_columns()
    if first.dtype != pl.String or not all(column.has_nulls() for column in others):
        return frame, names
    between = frame.select(alone=pl.all_horizontal(pl.exclude(first.name).is_null()))["alone"]
    if not between.any():
        return frame, names
    lines = [*above, *first.filter(between).fill_null("").to_list()]
    stamps = stamped("\n".join(line.strip() or "-" for line in lines).encode())["stamp"]
    before, inside = stamps.head(len(above)), stamps.slice(len(above))
    if inside.null_count() or before.null_count() == len(before):
        return frame, names
    times = pl.Series(_TIME, [None], dtype=pl.String).new_from_index(0, len(frame))
    times = times.scatter(between.arg_true(), inside)
    times = times.fill_null(strategy="forward").fill_null(before.drop_nulls()[-1])
    rows = frame.with_columns(times).filter(~between)
    at, what = rows.get_column(_TIME), rows.to_series(0)
    differs = at.n_unique() < len(at) == rows.select(pl.struct(at, what)).to_series().n_unique()
    is_named = recognise(names[0]).part in {Part.LABEL, Part.PID}
    label = _PROCESS if differs and not is_named else names[0]
    return rows, (label, *names[1:], _TIME)

"""Tables laid out sideways: a row for each metric, a column for each step or moment."""

from __future__ import annotations

from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.moments import axis_of, position
from memdiag.recording.tables.table import Table


def upright(table: Table) -> Table:
    """The table with a row for each moment; as it is unless its first column has names of memory,
    and the names of the others are moments: `epoch 1`, `epoch 2`...
    """
    moments = table.names[1:]
    axis = axis_of(moments, table.names[0])
    metrics = [str(name or "").strip() for name in table.series[0].to_list()] if axis else []
    if not any(recognise(name).part is Part.METRIC for name in metrics):
        return table
    rows = zip(*(column.cast(pl.String).to_list() for column in table.series[1:]), strict=True)
    columns = [pl.Series(list(row), dtype=pl.String) for row in rows]
    positions = pl.Series(list(map(position, moments)))
    return Table(names=(axis, *metrics), columns=(positions, *columns), first_line=None)

"""The largest resident memory under the names of `getrusage`, which Linux gives in KiB."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.tables.table import Table
from memdiag.values.sanitize import printable

# In bytes, as on macOS, it would be less than any program of an interpreter has.
_LEAST, _MOST = 2_000, 5_000_000


def with_kib_of_getrusage(table: Table) -> Table:
    """The table with KiB in the names of `ru_maxrss` and the like, if they have no unit and no
    value of them can be in bytes, and a note; unchanged otherwise.
    """
    found = [at for at, name in enumerate(table.names) if _is_largest(name) and _in_kib(table, at)]
    if not found:
        return table
    names = (f"{name} (KiB)" if at in found else name for at, name in enumerate(table.names))
    note = f"{printable(table.names[found[0]])} is taken as KiB, as getrusage gives it on Linux"
    return replace(table, names=tuple(names), notes=(*table.notes, note))


def _is_largest(name: str) -> bool:
    known = take_apart(name)
    is_largest = known.words[-1:] == ("maxrss",) or known.words[-2:] == ("max", "rss")
    return is_largest and known.bytes_per_unit is None


def _in_kib(table: Table, at: int) -> bool:
    cells = to_numbers(table.columns[at])
    there = cells.values[np.isfinite(cells.values)]
    return cells.unit is None and there.size > 0 and _LEAST <= there.min() <= there.max() < _MOST

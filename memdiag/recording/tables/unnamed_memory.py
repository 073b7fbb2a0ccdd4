"""Tables with a column of memory for each process, whose names do not mention memory: a panel of a
dashboard, exported as `time,web-7d9c,web-4xkq`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.parsing.cells import has_numbers, to_numbers
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.parsing.column_vocabulary import NO_AMOUNTS
from memdiag.recording.tables.table import Table
from memdiag.values.measurements import AxisKind

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats

# The kernel counts memory in pages of at least this size, and of at most 64 KiB.
_PAGE_BYTES, _LARGEST_PAGE_BYTES = 4096, 64 << 10
# Smaller than a process; counts and ids that are multiples of a page mostly are. Heuristic.
_LEAST_BYTES = 1 << 20
# Powers of two and other round numbers are few. Heuristic.
_DIFFERENT_AT_LEAST = 20
_COLUMNS_AT_MOST = 100


def with_unnamed_memory(table: Table) -> Table:
    """The table with a unit in the names of its numbers if all of them can only be memory, and a
    note; unchanged if it has memory by name, or no time.

    What is counted up, such as tokens, never falls; of memory, some column does.
    """
    if len(table.names) > _COLUMNS_AT_MOST:
        return table
    meanings = [recognise(name) for name in table.names]
    if any(one.part is Part.METRIC for one in meanings):
        return table
    if not any(one.axis is AxisKind.SECONDS for one in meanings):
        return table
    columns = {
        at: values
        for at, one in enumerate(meanings)
        if one.part is not Part.AXIS and has_numbers(values := to_numbers(table.columns[at]).values)
    }
    if not columns or not all(
        _may_be_memory(table.names[at]) and _are_pages(values) for at, values in columns.items()
    ):
        return table
    if not any(_falls(values) for values in columns.values()):
        return table
    names = [f"{name} (bytes)" if at in columns else name for at, name in enumerate(table.names)]
    are = "columns of numbers are" if len(columns) > 1 else "column of numbers is"
    note = f"the {len(columns)} {are} taken as memory in bytes:"
    note += " all of them are different multiples of a page, and nothing names them otherwise"
    return replace(table, names=tuple(names), notes=(*table.notes, note))


def _may_be_memory(name: str) -> bool:
    apart = take_apart(name)
    is_unknown = recognise(name).part is Part.OTHER and NO_AMOUNTS.isdisjoint(apart.words)
    meaning = recognise(f"{name} (bytes)")
    is_level = meaning.part is Part.METRIC and not (meaning.falling or meaning.capacity)
    return bool(apart.words) and is_unknown and is_level


def _are_pages(values: Floats) -> bool:
    seen = values[np.isfinite(values)]
    if seen.min() < _LEAST_BYTES or seen.max() >= 2.0**53 or np.any(seen != np.floor(seen)):
        return False
    different = np.unique(seen).astype(np.int64)
    common = int(np.gcd.reduce(different))
    is_page = common % _PAGE_BYTES == 0 and common <= _LARGEST_PAGE_BYTES
    return is_page and different.size >= _DIFFERENT_AT_LEAST


def _falls(values: Floats) -> bool:
    return bool(np.any(np.diff(values[np.isfinite(values)]) < 0))

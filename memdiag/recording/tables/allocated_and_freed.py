"""Tables that say how much was ever allocated, how much of it was freed, and what is held."""

from __future__ import annotations

from dataclasses import replace

from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.tables.table import Table

_ALLOCATED = frozenset({("allocated",), ("alloc",), ("allocs",)})
_FREED = frozenset({("freed",), ("frees",)})
_HELD = frozenset({("holding",), ("held",), ("outstanding",)})


def with_held_memory(table: Table) -> Table:
    """The table, with names that say what these columns are: beside one of what was freed, the one
    of what was allocated is a sum over the run, as of Cisco's `Allocated  Freed  Holding`.
    """
    words = [take_apart(name).words for name in table.names]
    if _FREED.isdisjoint(words) or _ALLOCATED.isdisjoint(words):
        return table
    names = (
        "allocated so far" if one in _ALLOCATED else f"{name} memory" if one in _HELD else name
        for name, one in zip(table.names, words, strict=True)
    )
    return replace(table, names=tuple(names))

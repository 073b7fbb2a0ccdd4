"""A machine's memory in tables whose names do not mention it: `time,free,used,cached,buffers`, as
Netdata exports it, or `free` in a table; and what is available, if only its parts are there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

import numpy as np

from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.parsing.column_meaning import is_available, recognise
from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.tables.table import Table
from memdiag.values import units
from memdiag.values.measurements import Role
from memdiag.values.sanitize import printable

# The first in which a size can be that of a machine is taken.
_UNITS = ("KiB", "MiB", "GiB", "B")
_LEAST_BYTES, _MOST_BYTES = 128 << 20, 4 << 40
# Of pages, in bytes, all sizes are multiples; of KiB and MiB few are.
_BLOCK_BYTES = 512

_USED, _FREE, _TOTAL = ("used",), ("free",), ("total",)
# Only of memory: disks have what is used and free too.
_BUFFERS = {("buffers",), ("buff", "cache"), ("buffer", "cache")}
_CACHED = {("cached",), ("cache",)}
_PARTS = {_USED, _FREE} | _BUFFERS | _CACHED
_OTHERS = {_TOTAL, ("available",)}
_COLUMNS_AT_MOST = 100
_NAMED_FREE = re.compile("free", re.IGNORECASE)
# Words that name a part of a machine's memory: what is left says whose it is.
_AVAILABLE_PARTS = {"free": "free"} | dict.fromkeys(("cached", "cache"), "cached")
_AVAILABLE_PARTS |= dict.fromkeys(("buffers", "buffer", "buff"), "buffers")
_OF_MEMORY = {"mem", "memory"}


def with_host_names(table: Table) -> Table:
    """The table with the machine and a unit in the names of its memory, and a note; unchanged if
    what is used, in buffers, and free or cached are not all in it.
    """
    if len(table.names) > _COLUMNS_AT_MOST:
        return table
    apart = [(at, take_apart(name)) for at, name in enumerate(table.names)]
    found = {
        name.words: at
        for at, name in apart
        if name.words in _PARTS | _OTHERS and not (name.percent or name.rate)
    }
    is_split = _FREE in found or not _CACHED.isdisjoint(found)
    if _USED not in found or not is_split or _BUFFERS.isdisjoint(found):
        return table
    cells = {words: to_numbers(table.columns[at]) for words, at in found.items()}
    bare = [
        words
        for words, at in found.items()
        if cells[words].unit is None and apart[at][1].bytes_per_unit is None
    ]
    summed = [words for words in bare if words in _PARTS]
    bare = bare if summed else []
    sizes = [np.nan_to_num(cells[words].values) for words in summed]
    is_whole = all(bool(np.all(size % _BLOCK_BYTES == 0)) for size in sizes)
    unit = "B" if is_whole else unit_of_machine(float(np.max(sum(sizes), initial=0.0)))
    names = list(table.names)
    for words, at in found.items():
        names[at] = f"host {names[at].strip()}" + (f" ({unit})" if words in bare else "")
    shown = ", ".join(printable(table.names[at]) for at in sorted(found.values()))
    note = f"{shown}: taken as memory of a machine" + (f", in {unit}" if bare else "")
    return replace(table, names=tuple(names), notes=(*table.notes, note))


def with_available(table: Table) -> Table:
    """The table with what programs may get, free memory and cache together, in the place of both,
    and a note; unchanged if that or what is used is in it. Reading files turns free memory into
    cache; a leak takes from both.
    """
    if len(table.names) > _COLUMNS_AT_MOST or any(is_available(name) for name in table.names):
        return table
    machines: dict[object, dict[str, int]] = defaultdict(dict)
    for at, name in enumerate(table.names):
        apart = take_apart(name)
        words = [word for word in apart.words if word not in _OF_MEMORY]
        parts = {_AVAILABLE_PARTS[word] for word in words if word in _AVAILABLE_PARTS}
        owner = tuple(word for word in words if word not in (*_AVAILABLE_PARTS, *_USED))
        if len(parts) <= 1 and not (apart.percent or apart.rate):
            part = "used" if _USED[0] in words else next(iter(parts), "")
            machines[owner, apart.bytes_per_unit].setdefault(part, at)
    gone: set[int] = set()
    names, columns, notes = list(table.names), list(table.columns), []
    for known in machines.values():
        if {"free", "cached"} <= known.keys() and "used" not in known:
            free, summed = known["free"], [at for part, at in known.items() if part]
            cells = [to_numbers(table.columns[at]) for at in summed]
            is_host = recognise(table.names[free]).role is Role.HOST
            if is_host and len({one.unit for one in cells}) == 1:
                unit = f" ({cells[0].unit.value})" if cells[0].unit else ""
                names[free] = _NAMED_FREE.sub("available", table.names[free], count=1) + unit
                columns[free] = np.sum([one.values for one in cells], axis=0)
                gone.update(at for at in summed if at != free)
                shown = ", ".join(printable(table.names[at]) for at in sorted(summed))
                notes.append(f"{shown}: their sum is available")
    kept = [at for at in range(len(names)) if at not in gone]
    return replace(
        table,
        columns=tuple(columns[at] for at in kept),
        names=tuple(names[at] for at in kept),
        notes=(*table.notes, *notes),
    )


def unit_of_machine(size: float, *, without_kib: bool = False) -> str:
    """The first unit in which a machine can have so much memory, KiB if there is none."""
    possible = _UNITS[1:] if without_kib else _UNITS
    sizes = ((unit, size * (units.bytes_per_unit(unit) or 1)) for unit in possible)
    return next((unit for unit, size in sizes if _LEAST_BYTES <= size <= _MOST_BYTES), "KiB")

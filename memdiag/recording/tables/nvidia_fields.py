"""Amounts under the names of nvidia-smi's fields, which are in MiB, as in gpustat's JSON."""

from __future__ import annotations

from dataclasses import replace

from memdiag.recording.tables.table import Table
from memdiag.values.sanitize import printable

# The field beside them shows whose names they are.
_IN_MIB, _BESIDE = ("memory.used", "memory.total", "gpu_memory_usage"), "utilization.gpu"


def with_mib(table: Table) -> Table:
    """The table with MiB in the names of these fields, and a note; unchanged if it has none."""
    found = {at for at, name in enumerate(table.names) if name.endswith(_IN_MIB)}
    if not found or not any(name.endswith(_BESIDE) for name in table.names):
        return table
    names = (f"{name} (MiB)" if at in found else name for at, name in enumerate(table.names))
    first = printable(table.names[min(found)])
    note = f"{first} and the like are taken as MiB, as nvidia-smi prints them"
    return replace(table, names=tuple(names), notes=(*table.notes, note))

"""The short names that PowerShell gives the memory of a process: `WS`, `PM`, `NPM`, `VM`."""

from __future__ import annotations

from dataclasses import replace

from memdiag.recording.tables.table import Table

_NAMES = {"WS": "working set", "PM": "private memory", "NPM": "nonpaged memory", "VM": "vms"}
# Together they are of a process.
_BESIDE = {"WS", "PM"}
_UNIT = "(bytes)"


def with_long_names(table: Table) -> Table:
    """The table with names in words, and bytes, of these columns; unchanged without both."""
    if not _BESIDE.issubset(table.names):
        return table
    names = tuple(f"{_NAMES[name]} {_UNIT}" if name in _NAMES else name for name in table.names)
    note = "WS and PM are taken as the working set and private memory, as PowerShell names them"
    return replace(table, names=names, notes=(*table.notes, note))

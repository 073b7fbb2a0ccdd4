"""Output of free in a loop."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import TICK, Header, Row, all_lines, table_of_blocks
from memdiag.recording.tables.host_parts import unit_of_machine
from memdiag.recording.tables.table import Table
from memdiag.values import units

_HEAD_LINES = 60
_UNITLESS = r"^([0-9.]+)$"
# The kernel counts pages: numbers of so small a machine that are not all whole pages are in MiB.
_SMALL_BYTES, _PAGE_KIB = 512 << 20, 4
_FREE_LINES = {"mem": "host", "-/+ buffers/cache": "host", "swap": "swap"}
# Of the machine and of swap, in the order of `free` in every language.
_FREE_NAMES = "total used free shared buff/cache available"
_FREE_CELLS = r"\s+[0-9][0-9.,]*(?:[KMGT]i?)?B?"
_FREE_LABEL = r"[^\W\d_][^\d:|=]{0,24}:"  # "Mém :", "Partition d'échange:"
_FREE_MACHINE = re.compile(rf"{_FREE_LABEL}(?P<cells>(?:{_FREE_CELLS}){{6}})\s*")
_FREE_ALONE = re.compile(rf"\s*Mem:(?:{_FREE_CELLS}){{6}}\s*")  # `free -m | grep Mem`
_FREE_SWAP = re.compile(rf"{_FREE_LABEL}(?P<cells>(?:{_FREE_CELLS}){{3}})\s*")


def is_free(source: Source) -> bool:
    """Return True if one of the first lines is the header of `free`, in any language."""
    lines = _in_english(source.head().split("\n")[:_HEAD_LINES])
    return any(map(_is_free_header, lines))


def read_free(source: Source) -> Table | None:
    """`free` in a loop. Numbers without a unit are in the one that the machine's size shows."""
    lines = ((_is_free_header(line), line) for line in _in_english(all_lines(source)))
    table = table_of_blocks(lines, _free_rows)
    if table is None:
        return None
    return in_unit_of_machine(table.with_decimal_points(), "host_total", "free")


def in_unit_of_machine(table: Table, size: str, command: str) -> Table:
    """The table with a unit in the cells that have none: the first in which the largest number of
    the column `size` can be a machine's memory; a note unless it is KiB, the default.
    """
    total = max(_bare(table, size), default=0.0)
    is_small = size == "host_total" and total * 1024 < _SMALL_BYTES
    unit = unit_of_machine(total, without_kib=is_small and not _are_pages(table))
    columns = tuple(
        column if name in {TICK, "time"} else column.str.replace(_UNITLESS, f"$1 {unit}")
        for name, column in zip(table.names, table.series, strict=True)
    )
    note = f"the numbers of {command} are taken as {unit}: they have no unit"
    notes = () if unit == "KiB" else (note,)
    return replace(table, columns=columns, notes=(*table.notes, *notes))


def _bare(table: Table, name: str) -> list[float]:
    """The numbers without a unit in a column, which may not be there."""
    if name not in table.names:
        return []
    column = table.series[table.names.index(name)]
    numbers: list[float] = column.filter(column.str.contains(_UNITLESS)).cast(pl.Float64).to_list()
    return numbers


def _are_pages(table: Table) -> bool:
    """Return True if all numbers can be pages in KiB."""
    names = (name for name in table.names if name not in {TICK, "time"})
    return all(number % _PAGE_KIB == 0 for name in names for number in _bare(table, name))


def _in_english(lines: Sequence[str]) -> list[str]:
    """The lines, with the names that `free` uses in English for those of its tables: six numbers of
    the machine above three of swap, below a line of names; or above rows without any names.
    """
    english = list(lines)
    for at, swap in enumerate(lines[2:], 2):
        machine, below = _FREE_MACHINE.fullmatch(lines[at - 1]), _FREE_SWAP.fullmatch(swap)
        if machine and below and not re.search("[0-9]", lines[at - 2]):
            english[at - 2] = _FREE_NAMES
            english[at - 1], english[at] = f"Mem:{machine['cells']}", f"Swap:{below['cells']}"
    if any(map(_is_free_header, english)):
        return english
    rows = ([_FREE_NAMES, line] if _FREE_ALONE.fullmatch(line) else [line] for line in english)
    return [line for row in rows for line in row]


def _is_free_header(line: str) -> bool:
    return line.split()[:3] == ["total", "used", "free"]


def _free_rows(header: Header, lines: Sequence[str]) -> list[Row]:
    row: Row = {}
    for line in lines:
        label, _, rest = line.partition(":")
        kind = _FREE_LINES.get(label.strip().lower())
        if kind is None:
            continue
        # An old `free` prints the values without buffers and cache on a line of their own.
        names = ["used", "free"] if label.startswith("-") else header
        for name, cell in zip(names, rest.split(), strict=False):
            if kind == "host" or name == "used":
                row[f"{kind}_{name.replace('/', '_')}"] = _free_cell(cell)
    return [row] if row else []


def _free_cell(cell: str) -> str:
    number = re.match(r"[0-9.,]+", cell)
    unit = cell[number.end() :] if number else ""
    if number is None or units.bytes_per_unit(unit or "KiB") is None:
        return ""
    return f"{number.group()} {unit}".strip()

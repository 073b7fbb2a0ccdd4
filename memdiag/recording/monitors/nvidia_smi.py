"""Output of nvidia-smi: `--query-gpu` and `--query-compute-apps` as CSV, `dmon` and `pmon`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from memdiag.recording.inputs.lines import chunks
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.ps_top_free import TICK
from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.parsing.column_vocabulary import NVIDIA_MEMORY
from memdiag.recording.tables.csv_dialect import Layout, split_line
from memdiag.recording.tables.table import Table, read_text_table

# Names that mean something else in other logs.
_RENAMED = {
    "index": "gpu",
    "gpu_uuid": "gpu",
    "gpu_bus_id": "gpu",
    "process_name": "process",
    "name": "gpu_model",
}
_GPUS = 16
_CELL_MIB = re.compile(r"[0-9]+ MiB")
# A number with or without a unit, or a reading that the driver does not have.
_CELL = re.compile(r"[0-9.]+(?: (?:MiB|%|W|MHz))?|\[.*\]")
_STAMP = re.compile(r"[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:.]+")

# `nvidia-smi dmon` and `pmon`; `dcgmi dmon` calls the column `Entity` and its cells `GPU 0`.
_DMON_HEADER = re.compile(r"#\s*(?:Date\s+Time\s+|Time\s+)?(?:gpu|entity)\s", re.I)
_DMON_ENTITY = re.compile(r"(?m)^GPU (?=[0-9])")
_DMON_NAMES = {
    "gpu": "gpu",
    "pid": "pid",
    "fb": "vram_mib",
    "fb_mb": "vram_mib",
    "command": "process",
}
_DMON_NAMES |= {"entity": "gpu", "fbusd": "vram_mib", "fbfre": "vram_free_mib"}
_DMON_NAMES |= {"name": "process", "date": "day", "mem": "bandwidth"}
# `| 30%   60C    P2   290W / 300W |  12345MiB / 49140MiB |`, and above it `|   0  NVIDIA RTX ...`.
_SCREEN = b"| NVIDIA-SMI "
_SCREEN_GPU = r"^\|\s+([0-9]{1,3})\s+[A-Z][A-Za-z].*\|"
_SCREEN_USED = r"\|\s*([0-9]+)MiB\s*/\s*[0-9]+MiB\s*\|"
_SCREEN_DATE = r"^[A-Z][a-z]{2} [A-Z][a-z]{2} +[0-9]{1,2} [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}$"
# `nvidia-smi -q`: sections by indentation.
_LISTING = b"==NVSMI LOG=="
_LISTING_GPU = r"^GPU ([0-9A-F]{4,}:[0-9A-F:.]+)\s*$"
_LISTING_SECTION = r"^    (\S[^:]*?)\s*$"
_LISTING_USED = r"^        Used\s*:\s*([0-9]+) MiB"
_LISTING_DATE = r"^Timestamp\s*:\s*(\S.*?)\s*$"
_LISTING_MEMORY = "FB Memory Usage"


def is_query(source: Source) -> bool:
    """Return True if the first line is the header or a row of a query's CSV."""
    cells = _first_cells(source)
    if _is_header(cells):
        return True
    known = any(_STAMP.fullmatch(cell) or "%" in cell for cell in cells)
    known = known or (len(cells) > 1 and all(map(_CELL.fullmatch, cells)))
    return known and any(_CELL_MIB.fullmatch(cell) for cell in cells)


def read_query(source: Source) -> Table:
    """The CSV of a query, with or without its header."""
    cells = _first_cells(source)
    named = _is_header(cells)
    layout = Layout(delimiter=",", names=tuple(cells), skip_lines=int(named), columns=len(cells))
    table = read_text_table(source, layout)
    return _renamed(table) if named else _without_header(table)


def _first_cells(source: Source) -> list[str]:
    return split_line(source.head().split("\n", 1)[0].rstrip("\r"), ",")


def _is_header(cells: Sequence[str]) -> bool:
    return any(cell.split(" ")[0] in NVIDIA_MEMORY for cell in cells)


def is_monitor(source: Source) -> bool:
    """Return True if the head has the header of `dmon` or `pmon`, with memory."""
    return "vram_mib" in _monitored(source)


def _monitored(source: Source) -> list[str]:
    """Our names of the columns of `dmon` or `pmon`, [] for other files."""
    lines = source.head().split("\n")
    header = next((line for line in lines[:10] if line.strip()), "")
    if _DMON_HEADER.match(header) is None:
        return []
    return [_DMON_NAMES.get(name.lower(), name) for name in header.lstrip("# ").split()]


def read_monitor(source: Source) -> Table:
    """The columns of `dmon` or `pmon`."""
    names = _monitored(source)
    rows = [
        row for line in _body(source) if len(row := line.split(None, len(names) - 1)) == len(names)
    ]
    columns = [
        pl.Series(name, [row[at] for row in rows], dtype=pl.String) for at, name in enumerate(names)
    ]
    return _numbered_rounds(Table(names=tuple(names), columns=tuple(columns), first_line=None))


def has_screens(source: Source) -> bool:
    """Return True if the beginning has a table that plain `nvidia-smi` prints."""
    return source.begins_with(_SCREEN)


def read_screens(source: Source) -> Table:
    """The tables that plain `nvidia-smi` prints: one row per GPU and screen."""
    line = pl.col("line")
    above = {
        "timestamp": pl.coalesce("stamp", line.str.extract(_SCREEN_DATE, 0)),
        "gpu": line.str.extract(_SCREEN_GPU, 1),
    }
    return _by_time(_used_below(source, _SCREEN, above, _SCREEN_USED))


def has_listings(source: Source) -> bool:
    """Return True if the beginning has the heading of `nvidia-smi -q`."""
    return source.begins_with(_LISTING)


def read_listings(source: Source) -> Table:
    """`nvidia-smi -q` in a loop: the used frame buffer of each GPU and listing."""
    line = pl.col("line")
    above = {
        "timestamp": line.str.extract(_LISTING_DATE, 1),
        "gpu": line.str.extract(_LISTING_GPU, 1),
        "section": line.str.extract(_LISTING_SECTION, 1),
    }
    rows = _used_below(source, _LISTING, above, _LISTING_USED)
    return _by_time(rows.filter(pl.col("section") == _LISTING_MEMORY))


def _used_below(
    source: Source, heading: bytes, above: Mapping[str, pl.Expr], used: str
) -> pl.DataFrame:
    """The lines with used memory, each with what was last said above it.

    heading: of each print. above: what applies to the lines below it. used: a pattern whose group
    is the number of MiB.
    """
    line = pl.col("line")
    parts = [
        chunk.select(
            line.str.contains(heading.decode(), literal=True).alias("new"),
            line.str.extract(used, 1).alias("memory.used [MiB]"),
            **above,
        ).filter(pl.col("new") | pl.any_horizontal(pl.all().exclude("new").is_not_null()))
        for chunk in chunks(source)
    ]
    return (
        pl.concat(parts)
        .with_columns(pl.col("new").cum_sum().alias(TICK), pl.col(*above).forward_fill())
        .filter(pl.col("memory.used [MiB]").is_not_null())
    )


def _by_time(rows: pl.DataFrame) -> Table:
    """One row per GPU and print, with its time if prints have one."""
    order = TICK if rows["timestamp"].null_count() == len(rows) else "timestamp"
    return Table.of(rows.select(order, "gpu", "memory.used [MiB]"))


def _body(source: Source) -> list[str]:
    text = _DMON_ENTITY.sub("", source.all_bytes().decode("utf-8", errors="replace"))
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _renamed(table: Table) -> Table:
    names = tuple(_RENAMED.get(name.strip(), name) for name in table.names)
    return _numbered_rounds(replace(table, names=names))


def _without_header(table: Table) -> Table:
    """Name the columns by what their cells look like.

    Of several columns in MiB the constant one is the total. Free and used memory add up to it;
    nvidia-smi's own examples query them in this order: total, free, used.
    """
    names = [""] * len(table.names)
    amounts = []
    for at, column in enumerate(table.series):
        sample = [str(cell).strip() for cell in column.head(50).drop_nulls().to_list()]
        if sample and all(_STAMP.fullmatch(cell) for cell in sample):
            names[at] = "timestamp"
        elif sample and any(_CELL_MIB.fullmatch(cell) for cell in sample):
            amounts.append(at)
        elif "gpu" not in names and _is_index(column):
            names[at] = "gpu"
    note = _name_amounts(table, names, amounts)
    return replace(table, names=tuple(names), notes=(*table.notes, note))


def _name_amounts(table: Table, names: list[str], amounts: Sequence[int]) -> str:
    values = {at: to_numbers(table.columns[at]).values for at in amounts}
    constant = [at for at in amounts if np.nanmin(values[at]) == np.nanmax(values[at])]
    if constant and len(amounts) > 1:
        names[max(constant, key=lambda at: float(values[at][0]))] = "memory.total"
    rest = [at for at in amounts if not names[at]]
    if len(rest) >= 2 and _add_up(values[rest[-2]], values[rest[-1]]):
        free, used = rest[-2:]
        if constant or not _rises(values[free]):
            names[free], names[used] = "memory.free", "memory.used"
            order = "total, free and used" if constant else "free and used"
            return f"the CSV has no header: taken as {order} memory, in nvidia-smi's order"
        names[free], names[used] = "memory.used", "memory.free"
        return (
            "the CSV has no header: of two columns that add up the one that rises is taken as used"
        )
    for at in rest:
        names[at] = "memory.used" if at == rest[-1] else f"column_{at + 1}"
    return "the CSV has no header: the last column in MiB is taken as the used memory"


def _is_index(column: pl.Series) -> bool:
    """Return True for 0, 1, 2 ... without a gap, not for degrees, or for one small number."""
    numbers = set(to_numbers(column.drop_nulls()).values.tolist())
    return numbers == set(range(len(numbers))) or (len(numbers) == 1 and max(numbers) < _GPUS)


def _rises(values: np.ndarray) -> bool:
    seen = values[np.isfinite(values)]
    return bool(seen[-1] > seen[0])


def _add_up(a: np.ndarray, b: np.ndarray) -> bool:
    total = a + b
    return bool(np.nanmax(total) - np.nanmin(total) <= 0.01 * np.nanmax(total))


def _numbered_rounds(table: Table) -> Table:
    """Without a time column, one row of each GPU and process makes one sample."""
    if any(name in {"timestamp", "time"} for name in table.names):
        return table
    keys = [c for n, c in zip(table.names, table.series, strict=True) if n in {"gpu", "pid"}]
    if not keys:
        return table
    key = pl.DataFrame([column.alias(str(at)) for at, column in enumerate(keys)])
    rounds = key.select(pl.int_range(pl.len()).over(key.columns).alias(TICK))[TICK]
    return replace(table, names=(TICK, *table.names), columns=(rounds, *table.columns))

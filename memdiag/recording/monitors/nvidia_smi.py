"""Output of nvidia-smi: `--query-gpu` and `--query-compute-apps` as CSV, `dmon` and `pmon`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.inputs.lines import chunks
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.line_tools import table_of_lines
from memdiag.recording.monitors.samplings import TICK, Row, time_in_front
from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.parsing.column_vocabulary import NVIDIA_MEMORY
from memdiag.recording.parsing.printed_columns import fields_of_nvidia_smi
from memdiag.recording.tables.cells_of_lines import has_command
from memdiag.recording.tables.csv_dialect import Layout, split_line
from memdiag.recording.tables.table import Table, read_text_table

if TYPE_CHECKING:
    from memdiag.recording.lazy_polars import Column
    from memdiag.values.measurements import Floats

# Names that mean something else in other logs.
_RENAMED = {
    "index": "gpu",
    "gpu_uuid": "gpu",
    "gpu_bus_id": "gpu",
    "process_name": "process",
    "name": "gpu_model",
}
# Of a query without its header.
_FIELDS = {**_RENAMED, "timestamp": "time", **{name: f"{name} [MiB]" for name in NVIDIA_MEMORY}}
_IN_MIB = re.compile(r"[0-9]{1,9}(?: MiB)?|\[.*\]")
_ROWS_AT_LEAST, _LONGEST = 3, 1000
_GPUS = 16
# What differs by less is the same: amounts that add up to a total, a level. Heuristic.
_SAME = 0.01
_CELL_MIB = re.compile(r"[0-9]+ MiB")
# A number with or without a unit, or a reading that the driver does not have.
_CELL = re.compile(r"[0-9.]+(?: (?:MiB|%|W|MHz))?|\[.*\]")
_STAMP = re.compile(r"[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:.]+")
_EXACT_STAMP = re.compile(r"[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}")
# Shares and degrees are smaller numbers, in MiB without the unit. Heuristic.
_LEAST_MIB = 128

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
_DMON_NAMES |= {"name": "process", "time": "time", "mem": "bandwidth"}
# `| 30%   60C    P2   290W / 300W |  12345MiB / 49140MiB |`, and above it `|   0  NVIDIA RTX ...`.
_SCREEN = b"| NVIDIA-SMI "
_SCREEN_GPU = r"^\|\s+([0-9]{1,3})\s+[A-Z][A-Za-z].*\|"
_SCREEN_USED = r"\|\s*([0-9]+)MiB\s*/\s*[0-9]+MiB\s*\|"
_SCREEN_DATE = r"^[A-Z][a-z]{2} [A-Z][a-z]{2} +[0-9]{1,2} [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}$"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """Patterns of a form of `nvidia-smi -q`.

    heading: of each print. memory: the section of the frame buffer.
    """

    heading: bytes
    date: str
    gpu: str
    section: str
    used: str
    memory: str


# `nvidia-smi -q`: sections by indentation; `nvidia-smi -q -x`.
_LISTINGS = (
    _Listing(
        heading=b"==NVSMI LOG==",
        date=r"^Timestamp\s*:\s*(\S.*?)\s*$",
        gpu=r"^GPU ([0-9A-F]{4,}:[0-9A-F:.]+)\s*$",
        section=r"^    (\S[^:]*?)\s*$",
        used=r"^        Used\s*:\s*([0-9]+) MiB",
        memory="FB Memory Usage",
    ),
    _Listing(
        heading=b"<nvidia_smi_log>",
        date=r"^\s*<timestamp>([^<]+)</timestamp>",
        gpu=r'^\s*<gpu id="([^"]+)">',
        section=r"^\s*<(\w+_memory_usage)>",
        used=r"^\s*<used>([0-9]+) MiB</used>",
        memory="fb_memory_usage",
    ),
)


def is_query(source: Source) -> bool:
    """Return True if the first line is the header or a row of a query's CSV, or if the head has the
    command, which names the columns, and some rows of them.
    """
    if (fields := _fields(source)) and sum(
        _row_of(line, fields) is not None for line in source.head().split("\n")
    ) >= _ROWS_AT_LEAST:
        return True
    cells = _first_cells(source)
    if _is_header(cells):
        return True
    known = any(_STAMP.fullmatch(cell) or "%" in cell for cell in cells)
    known = known or (len(cells) > 1 and all(map(_CELL.fullmatch, cells)))
    if known and any(_CELL_MIB.fullmatch(cell) for cell in cells):
        return True
    stamps = [cell for cell in cells if _EXACT_STAMP.fullmatch(cell)]  # nounits
    return bool(stamps) and all(_CELL.fullmatch(cell) for cell in cells if cell not in stamps)


def read_query(source: Source) -> Table | None:
    """The CSV of a query, with or without its header; None if the memory among numbers without
    units is not known.
    """
    if fields := _fields(source):
        return table_of_lines(source, lambda line: _row_of(line, fields), has_clock=False)
    cells = _first_cells(source)
    named = _is_header(cells)
    layout = Layout(delimiter=",", names=tuple(cells), skip_lines=int(named), columns=len(cells))
    table = read_text_table(source, layout)
    return _renamed(table) if named else _without_header(table)


def _fields(source: Source) -> list[str]:
    """The fields of a command without a header, [] if there are several that query others."""
    lines = (line for line in source.head().split("\n") if len(line) <= _LONGEST)
    found = {tuple(fields) for line in lines if (fields := fields_of_nvidia_smi(line))}
    return list(*found) if len(found) == 1 else []


def _row_of(line: str, fields: list[str]) -> Row | None:
    """The cells of a row of the fields, perhaps with a time before the first of them."""
    cells = [cell.strip() for cell in line[:_LONGEST].split(",")]
    in_front, cells = cells[: -len(fields)], cells[-len(fields) :]
    time, cells[0] = time_in_front(" ".join([*in_front, cells[0]]))
    if len(cells) < len(fields) or (in_front and not time):
        return None
    row = dict(zip(fields, cells, strict=True))
    if not all(_IN_MIB.fullmatch(row[name]) for name in fields if name in NVIDIA_MEMORY):
        return None
    named = {_FIELDS.get(name, name): cell for name, cell in row.items()}
    return {"time": time, **named} if time else named


def _first_cells(source: Source) -> list[str]:
    return split_line(source.head().split("\n", 1)[0].rstrip("\r"), ",")


def _is_header(cells: Sequence[str]) -> bool:
    names_memory = any(cell.split(" ")[0] in NVIDIA_MEMORY for cell in cells)
    return names_memory and not has_command([*cells])


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
    """Return True if the beginning has the heading of `nvidia-smi -q`, or of its XML."""
    return any(source.begins_with(form.heading) for form in _LISTINGS)


def read_listings(source: Source) -> Table:
    """`nvidia-smi -q` in a loop: the used frame buffer of each GPU and listing."""
    form = next(form for form in _LISTINGS if source.begins_with(form.heading))
    line = pl.col("line")
    above = {
        "timestamp": pl.col("whole").str.extract(form.date, 1),
        "gpu": line.str.extract(form.gpu, 1),
        "section": line.str.extract(form.section, 1),
    }
    rows = _used_below(source, form.heading, above, form.used)
    return _by_time(rows.filter(pl.col("section") == form.memory))


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


def _without_header(table: Table) -> Table | None:
    """Name the columns by what their cells look like."""
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
    gpu = table.series[names.index("gpu")] if "gpu" in names else None
    unit = "" if amounts else " [MiB]"
    if not amounts:
        amounts = _without_units(
            {n: _by_gpu(c, gpu) for n, c in enumerate(table.columns) if not names[n]}
        )
        if not amounts:
            return None
    named = _amounts([_by_gpu(table.columns[at], gpu) for at in amounts])
    for at, name in zip(amounts, named.names, strict=True):
        names[at] = f"{name}{unit}" if name else f"column_{at + 1}"
    return replace(
        table,
        names=tuple(names),
        notes=(*table.notes, f"the CSV has no header: {named.note}"),
        unread_share=0.0 if named.is_certain else 1 / 2,
    )


def _without_units(columns: Mapping[int, list[Floats]]) -> list[int]:
    """The columns of whole numbers that are the total memory and what is used of it, or used and
    free; [] if any other column may be one of them, such as a clock rate.
    """
    whole = {
        at: parts
        for at, parts in columns.items()
        if parts and all(bool(np.all(part == np.floor(part))) for part in parts)
    }
    large = {at: parts for at, parts in whole.items() if max(map(np.max, parts)) >= _LEAST_MIB}
    totals = [at for at, parts in large.items() if _is_flat(parts)]
    rest = [at for at in large if at not in totals]
    if len(totals) != 1 or len(rest) not in {1, 2}:
        return []
    most = float(large[totals[0]][0].max())
    within = all(float(part.max()) <= most for at in rest for part in large[at])
    adds_up = len(rest) == 1 or _add_up(large[rest[0]], large[rest[1]])
    return [*large] if within and adds_up else []


def _by_gpu(column: Column, gpu: pl.Series | None) -> list[Floats]:
    """The readings of each GPU."""
    values = to_numbers(column).values
    cells = [""] * len(values) if gpu is None else gpu.cast(pl.String).fill_null("").to_list()
    parts = (values[np.flatnonzero(np.array(cells) == one)] for one in dict.fromkeys(cells))
    seen = [part[np.isfinite(part)] for part in parts]
    return [part for part in seen if part.size]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Amounts:
    """What the columns in MiB are, "" for those that are not known, and a note that says so.

    is_certain: none of the others can be the memory in use.
    """

    names: Sequence[str]
    note: str
    is_certain: bool


def _amounts(columns: Sequence[list[Floats]]) -> _Amounts:
    """Names of columns in MiB, each given as the readings of each GPU.

    Of several the constant one is the total. Free and used memory add up to it; nvidia-smi's own
    examples query them in this order: total, free, used. Without that order the one that rises is
    used. In the column that is taken as used, a fall may be that of the free memory.
    """
    totals = [at for at, one in enumerate(columns) if _is_flat(one)] if len(columns) > 1 else []
    total = max(totals, key=lambda at: float(columns[at][0][0]), default=None)
    rest = [at for at in range(len(columns)) if at != total]
    names = ["memory.total" if at == total else "" for at in range(len(columns))]
    first, used = rest[-2:] if len(rest) > 1 else (None, rest[-1])
    if first is None or not _add_up(columns[first], columns[used]):
        names[used] = "memory.used"
        note = "the last column in MiB is taken as the used memory"
        return _Amounts(
            names=names, note=note, is_certain=len(rest) == 1 and not _falls(columns[used])
        )
    if total is not None and total < first:
        names[first], names[used] = "memory.free", "memory.used"
        note = "taken as total, free and used memory, in nvidia-smi's order"
        return _Amounts(names=names, note=note, is_certain=not _falls(columns[used]))
    if _change(columns[first]) > 0:
        first, used = used, first
    names[first], names[used] = "memory.free", "memory.used"
    return _Amounts(
        names=names,
        note="of two columns that add up the one that rises is taken as used",
        is_certain=_falls(columns[first]) or _is_flat(columns[used], _SAME),
    )


def _is_index(column: pl.Series) -> bool:
    """Return True for 0, 1, 2 ... without a gap, not for degrees, or for one small number."""
    numbers = set(to_numbers(column.drop_nulls()).values.tolist())
    return numbers == set(range(len(numbers))) or (len(numbers) == 1 and max(numbers) < _GPUS)


def _change(parts: Sequence[Floats]) -> float:
    """From the first to the last reading, of all GPUs together."""
    return sum(float(part[-1] - part[0]) for part in parts)


def _falls(parts: Sequence[Floats]) -> bool:
    return _change(parts) < -_SAME * sum(float(part.max()) for part in parts)


def _is_flat(parts: Sequence[Floats], share: float = 0.0) -> bool:
    return all(float(part.max() - part.min()) <= share * float(part.max()) for part in parts)


def _add_up(a: Sequence[Floats], b: Sequence[Floats]) -> bool:
    return len(a) == len(b) and all(
        one.size == other.size and _is_flat([one + other], _SAME)
        for one, other in zip(a, b, strict=True)
    )


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

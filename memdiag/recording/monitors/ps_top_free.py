"""Output of mprof, psrecord, pidstat, smem, free, and of ps and top in a loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from memdiag.recording.inputs.paste_cleanup import without_escapes
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.tables.host_parts import unit_of_machine
from memdiag.recording.tables.table import Table
from memdiag.values import units

# Counts the samples of a monitor that prints no time.
TICK = "tick"

_MAX_BYTES = 512 << 20
_PROCESSES_AT_MOST = 20
# Processes with fewer readings are left out beside one with at least so many. Heuristic.
_READINGS_AT_LEAST, _LONG_LIVED_AT_LEAST = 4, 8
_MPROF = re.compile(r"(?:CMDLINE .*\n)?(?:(?:MEM|FUNC|CHLD) .*\n)+")
_PSRECORD = re.compile(r"#\s*Elapsed time\s+CPU \(%\)\s+Real \(MB\)\s+Virtual \(MB\)")
_HEAD_LINES = 60
_TIME = re.compile(r"(?:\b|(?<=[0-9]T))([0-9]{1,2})(:[0-9]{2}:[0-9]{2})(?:\s+([AP])M)?(?:Z|\b)")
# Hours and minutes alone on a line.
_MINUTES = re.compile(r"\W*([01]?[0-9]|2[0-3])(:[0-5][0-9])(?:\s*([AP])M)?\W*")
_KIB = {"mem", "rss", "vsz", "vsize", "res", "virt", "shr", "size", "pss", "uss", "swap"}
_NAMES = {
    "res": "rss",
    "virt": "vms",
    "vsz": "vms",
    "vsize": "vms",
    "shr": "shared",
    "cmd": "process",
}
_NAMES |= {"command": "process", "rss": "rss", "pss": "pss", "uss": "uss", "swap": "swap"}
_CPU_TIME = "TIME"  # in ps: the processor time of a process
_PROCESS_MEMORY = {"rss", "res", "pss", "uss"}
_OF_MACOS = {"command", "mem"}  # its top prints `812M+`
# The rows of `ps aux`, of which `grep` leaves out the header.
_PS_HEADER = "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND"
_PS_AUX = re.compile(
    r"\s*\S+\s+[0-9]+(?:\s+[0-9]+(?:[.,][0-9])?){2}(?:\s+[0-9]+){2}\s+\S+\s+[A-Z][A-Za-z<+]*\s+\S+"
    r"\s+[0-9]+:[0-9]{2}(?:[.,:][0-9]+)?\s+\S"
)
_PS_ROWS_AT_LEAST = 4


def is_mprof(source: Source) -> bool:
    """Return True if the head has the lines of `mprof run`."""
    head = source.head()
    return head.startswith(("CMDLINE", "MEM ")) and _MPROF.match(head + "\n") is not None


def read_mprof(source: Source) -> Table:
    """`mprof run`: `MEM <MiB> <seconds since 1970>`, and `CHLD <n> ...` for children."""
    lines = pl.Series("line", all_lines(source))
    own = lines.str.extract_groups(r"^MEM ([0-9.]+) ([0-9.]+)").struct.unnest()
    child = lines.str.extract_groups(r"^CHLD ([0-9]+) ([0-9.]+) ([0-9.]+)").struct.unnest()
    memory, at, number = own.to_series(0), own.to_series(1), child.to_series(0)
    names = pl.select(
        pl.when(number.is_not_null())
        .then(pl.lit("child ") + number)
        .when(memory.is_not_null())
        .then(pl.lit("main"))
    ).to_series()
    frame = pl.DataFrame(
        {
            "timestamp": at.zip_with(at.is_not_null(), child.to_series(2)).cast(pl.Float64),
            "process": names,
            "memory_mib": memory.zip_with(memory.is_not_null(), child.to_series(1)).cast(
                pl.Float64
            ),
        }
    ).drop_nulls()
    return Table.of(frame)


def is_psrecord(source: Source) -> bool:
    """Return True if the head begins with the header of `psrecord --log`."""
    return _PSRECORD.match(source.head().lstrip()) is not None


def read_psrecord(source: Source) -> Table:
    """`psrecord --log`: elapsed time, CPU, real and virtual memory in MB."""
    numbers = pl.Series(all_lines(source)).str.extract_groups(
        r"^\s*([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s*$"
    )
    frame = numbers.struct.unnest().drop_nulls()
    frame.columns = ["elapsed_s", "cpu", "rss_mb", "vms_mb"]
    return Table.of(frame.drop("cpu").cast(pl.Float64))


def has_processes(source: Source) -> bool:
    """Return True if one of the first lines is the header of a process table, or several are rows
    of `ps aux`.
    """
    lines = source.head().split("\n")[:_HEAD_LINES]
    rows = sum(_PS_AUX.match(line) is not None for line in lines)
    return rows >= _PS_ROWS_AT_LEAST or any(map(_is_process_header, lines))


def read_processes(source: Source) -> Table | None:
    """Tables with a header like `PID ... RSS ... COMMAND`, once or repeated."""
    lines = list(_with_headers(all_lines(source)))
    table = _read_blocks(lines, _is_process_header, _process_rows)
    if table is None:
        return None
    return _largest_processes(_long_lived(table.with_decimal_points()))


def is_free(source: Source) -> bool:
    """Return True if one of the first lines is the header of `free`, in any language."""
    lines = _in_english(source.head().split("\n")[:_HEAD_LINES])
    return any(map(_is_free_header, lines))


def read_free(source: Source) -> Table | None:
    """`free` in a loop. Numbers without a unit are in the one that the machine's size shows."""
    table = _read_blocks(_in_english(all_lines(source)), _is_free_header, _free_rows)
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


Header = list[str]
Row = dict[str, str]


def _read_blocks(
    lines: Sequence[str],
    is_header: Callable[[str], bool],
    rows_of: Callable[[Header, Sequence[str]], list[Row]],
) -> Table | None:
    rows: list[Row] = []
    header: Header = []
    block: list[str] = []
    sample, clock, header_clock = 0, "", ""
    for line in [*lines, None]:
        if line is not None and not is_header(line):
            if line.strip():
                block.append(line)
                clock = _clock(line, header) or clock
            continue
        moment = {TICK: str(sample), **({"time": header_clock} if header_clock else {})}
        rows += [{**moment, **row} for row in rows_of(header, block)]
        sample += 1 if header else 0
        header, block, header_clock = _header(line or ""), [], clock
    if not rows:
        return None
    names = list(dict.fromkeys(name for row in rows for name in row))
    frame = pl.DataFrame({name: [row.get(name) for row in rows] for name in names})
    return Table.of(frame.drop(TICK) if "time" in names else frame)


def clock_in(line: str) -> str:
    """The time of day in a line on a 24-hour clock, "" if there is none."""
    found = _TIME.search(line) or _MINUTES.fullmatch(line)
    if found is None:
        return ""
    hour = int(found[1])
    if found[3]:
        hour = hour % 12 + (12 if found[3] == "P" else 0)
    return f"{hour:02d}{found[2]}"


def _clock(line: str, header: Header) -> str:
    """The time of day that `date` or top printed; "" in a process's row, which has CPU time."""
    names, words = [name.lower() for name in header], line.split()
    at = names.index("pid") if "pid" in names else len(words)
    return "" if at < len(words) and words[at].isdigit() else clock_in(line)


def _header(line: str) -> Header:
    """Names of the columns; pidstat has the time in the place of its name, and htop an arrow behind
    the column by which it sorts.
    """
    words = re.sub("[▽△]", " ", line).lstrip("# ").split()
    return ["time" if _TIME.fullmatch(word) else word for word in words]


def _is_process_header(line: str) -> bool:
    words = {word.lower() for word in line.split()}
    has_memory = bool(words & _PROCESS_MEMORY) or words >= _OF_MACOS
    return "pid" in words and has_memory and not any(map(_is_number, words))


def _with_headers(lines: Iterable[str]) -> Iterator[str]:
    """The lines with a header above the rows of each sampling: where a pid or a time comes again,
    and above rows of `ps aux | grep ...`.
    """
    header, at, is_dated = "", 0, False
    pids: set[str] = set()
    for line in lines:
        if _is_process_header(line):
            header, at, is_dated, pids = line, _place_of_pid(line), False, set()
        elif not header and _PS_AUX.match(line):
            header, at = _PS_HEADER, _place_of_pid(_PS_HEADER)
            yield header
        words = line.split(None, at + 1) if header else []
        if len(words) > at and words[at].isdigit():
            if is_dated or words[at] in pids:
                is_dated, pids = False, set()
                yield header
            pids.add(words[at])
        elif pids and clock_in(line):
            is_dated = True
        yield line


def _place_of_pid(header: str) -> int:
    return [name.lower() for name in _header(header)].index("pid")


def _is_number(word: str) -> bool:
    return word[:1].isdigit() and ":" not in word


def _process_rows(header: Header, lines: Sequence[str]) -> list[Row]:
    rows = []
    command = next((at for at, n in enumerate(header) if n.lower() in _COMMANDS), len(header) - 1)
    for line in lines:
        cells = _cells(line, command, len(header))
        if len(cells) != len(header):
            continue
        row = {}
        for name, cell in zip(header, cells, strict=True):
            lower = name.lower()
            key = _CPU_TIME if name == _CPU_TIME else _NAMES.get(lower, lower)
            row[key] = _kib(cell) if lower in _KIB else cell.strip()
        if "time" in row:  # pidstat's; "12:00:01 PM" is two cells
            row["time"] = clock_in(line) or row["time"]
        if row.get("pid", "").isdigit():
            rows.append({key: row[key] for key in row if key in _KEPT})
    return rows


def _long_lived(table: Table) -> Table:
    """The table without processes that have too few readings for a verdict, where another is
    there most of the time: commands that ran during a reading, such as the monitor itself.
    """
    named = dict(zip(table.names, table.series, strict=True))
    moments = named.get("time", named.get(TICK))
    counts = named["pid"].value_counts()
    most = counts["count"].to_list()
    if moments is None or max(most) < max(_LONG_LIVED_AT_LEAST, moments.n_unique() / 2):
        return table
    few = counts.filter(counts["count"] < _READINGS_AT_LEAST)["pid"]
    if few.is_empty():
        return table
    note = f"of {len(counts)} processes {len(few)} with fewer than {_READINGS_AT_LEAST} readings"
    return table.filter(~named["pid"].is_in(few.to_list()), f"{note} are left out")


def _largest_processes(table: Table) -> Table:
    """A machine runs hundreds of processes: keep those with the most memory."""
    named = dict(zip(table.names, table.series, strict=True))
    size = next(named[name] for name in ("rss", "pss", "uss", "mem") if name in named)
    frame = pl.DataFrame({"pid": named["pid"], "size": to_numbers(size).values})
    peaks = frame.group_by("pid").agg(pl.col("size").max()).sort("size", descending=True)
    if len(peaks) <= _PROCESSES_AT_MOST:
        return table
    wanted = frame["pid"].is_in(peaks["pid"].head(_PROCESSES_AT_MOST).to_list())
    note = f"of {len(peaks)} processes the {_PROCESSES_AT_MOST} largest are analyzed"
    return table.filter(wanted, note)


def _cells(line: str, command: int, width: int) -> list[str]:
    """A command has blanks in it; smem has columns after it."""
    cells = line.split(None, command)
    behind = width - 1 - command
    if behind and len(cells) > command:
        cells[command:] = cells[command].rsplit(None, behind)
    return cells


_COMMANDS = {"command", "cmd", "args", "comm"}
_KEPT = {"pid", "time", "process", "mem", "rss", "vms", "pss", "uss", "swap", "%mem"}


def _kib(cell: str) -> str:
    """With the unit of these tools: KiB unless they print a letter (top: `1.2g`)."""
    cell = cell.rstrip("+-")
    number, letter = (cell[:-1], cell[-1]) if cell[-1:].isalpha() else (cell, "k")
    return f"{number} {letter.upper()}iB"


_UNITLESS = r"^([0-9.]+)$"
# The kernel counts pages: numbers of so small a machine that are not all whole pages are in MiB.
_SMALL_BYTES, _PAGE_KIB = 512 << 20, 4
_FREE_LINES = {"mem": "host", "-/+ buffers/cache": "host", "swap": "swap"}


# Of the machine and of swap, in the order of `free` in every language.
_FREE_NAMES = "total used free shared buff/cache available"
_FREE_CELLS = r"\s+[0-9][0-9.,]*(?:[KMGT]i?)?B?"
_FREE_LABEL = r"[^\W\d_][^\d:|=]{0,24}:"  # "Mém :", "Partition d'échange:"
_FREE_MACHINE = re.compile(rf"{_FREE_LABEL}(?P<cells>(?:{_FREE_CELLS}){{6}})\s*")
_FREE_SWAP = re.compile(rf"{_FREE_LABEL}(?P<cells>(?:{_FREE_CELLS}){{3}})\s*")


def _in_english(lines: Sequence[str]) -> list[str]:
    """The lines, with the names that `free` uses in English for those of its tables: six numbers of
    the machine above three of swap, below a line of names.
    """
    english = list(lines)
    for at, swap in enumerate(lines[2:], 2):
        machine, below = _FREE_MACHINE.fullmatch(lines[at - 1]), _FREE_SWAP.fullmatch(swap)
        if machine and below and not re.search("[0-9]", lines[at - 2]):
            english[at - 2] = _FREE_NAMES
            english[at - 1], english[at] = f"Mem:{machine['cells']}", f"Swap:{below['cells']}"
    return english


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


def all_lines(source: Source) -> list[str]:
    """The lines of a source's first 512 MiB."""
    raw = without_escapes(source.first_bytes(_MAX_BYTES))
    text = raw.decode("utf-8", errors="replace")
    return text.replace("\r", "").split("\n")

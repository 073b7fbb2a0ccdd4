"""What a system and a JVM report: sar, atopsar, vmstat, vm_stat, nmon, jstat, copies of files in
/proc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memdiag.recording.inputs.source import Source
from memdiag.recording.monitors.free_loops import in_unit_of_machine
from memdiag.recording.monitors.line_tools import HEAD_LINES, in_head, table_of_lines
from memdiag.recording.monitors.samplings import Row, clock_in
from memdiag.recording.tables.dated_sections import seconds_alone
from memdiag.recording.tables.table import Table
from memdiag.values import units

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}:[0-9]{2}:[0-9]{2}|[A-Z]{3,4}")
_NO_VALUE = "-"
_NUMBER = re.compile(rf"[0-9]+(?:[.,][0-9]+)?|{_NO_VALUE}")

_SAR = re.compile(r"\bkbmemfree\b.*\bkbmemused\b")
_SAR_NAMES = {"kbmemused": "host_used", "kbavail": "host_available", "kbmemfree": "host_free"}
_SAR_NAMES |= {"kbcached": "host_cached"}
# atopsar's rows have a unit in each cell; its header ends with the name of the report.
_ATOPSAR = re.compile(r"^[0-9]{1,2}:[0-9]{2}:[0-9]{2}\s+memtotal\s+memfree\s.*_mem_\s*$")
_WITH_LETTER = re.compile(r"\b([0-9]+(?:[.,][0-9]+)?)([KMGT])(?=\s|$)")
_VMSTAT = re.compile(r"\bswpd\s+free\s+(?:buff\s+cache|inact\s+active)\b")
# macOS: a page's size, and then a row per interval, or a line per kind of pages. What programs use
# are the pages that are of no file, wired, or compressed.
_VM_STAT = re.compile(r"^Mach Virtual Memory Statistics: \(page size of ([0-9]+) bytes\)")
_VM_STAT_NAMES = re.compile(r"\bfree\s+active\s+specul\b")
_VM_STAT_LINES = {
    "Anonymous pages": "anonymous",
    "Pages wired down": "wired",
    "Pages occupied by compressor": "cmprssor",
}
_VM_STAT_LINE = re.compile(rf"({'|'.join(_VM_STAT_LINES)}): +([0-9]+)")
_VM_STAT_USED = frozenset(_VM_STAT_LINES.values())
# Of the JVM: the old generation, of which collections leave what is in use, in KiB and in percent.
_JSTAT = re.compile(r"\bOU?\b.*\bYGC\b.*\b[FY]GCT?\b")
_JSTAT_NAMES = {"OU": "old heap (KiB)", "O": "old heap (%)", "MU": "metaspace memory (KiB)"}
_NMON = re.compile(r"^MEM,Memory .*\bmemfree\b")
_SIZES = ("host_available", "host_free")
_FREE_PARTS = ("free", "buff", "cache"), ("memfree", "buffers", "cached")

# `VmRSS:  823 kB` of /proc/PID/status, `MemFree: ...` of meminfo, `Pss: ...` of smaps_rollup.
_KEY = re.compile(r"([A-Za-z_]+)(?:\([a-z_]+\))?:\s+([0-9]+) kB$")
_ANY_KEY = re.compile(r"[A-Za-z_0-9()]+:\s|.*\[rollup\]$")
_PROC = {"VmRSS": "rss", "VmHWM": "peak_rss", "VmSize": "vms", "VmSwap": "swap", "RssAnon": "anon"}
_PROC |= {"MemAvailable": "host_available", "MemFree": "host_free", "Cached": "host_cached"}
_PROC |= {"Rss": "rss", "Pss": "pss", "Swap": "swap"}
# `anon 2410938368` of a cgroup's memory.stat, in bytes; in the first version `rss` and `cache`.
_CGROUP_KEY = re.compile(r"([a-z_]+) ([0-9]+)$")
_CGROUP = {"anon": "anon", "file": "pagecache", "shmem": "shmem", "rss": "rss"}
_CGROUP |= {"cache": "pagecache", "kernel": "kernel"}

is_sar = in_head(_SAR)
is_atopsar = in_head(_ATOPSAR)
is_vmstat = in_head(_VMSTAT)
is_vm_stat = in_head(_VM_STAT)
is_jstat = in_head(_JSTAT)
is_nmon = in_head(_NMON)


def _below(header: re.Pattern[str], line: str, names: list[str]) -> dict[str, str]:
    """The numbers of a row by the names in the last header, which `names` keeps; {} for others."""
    words = [word for word in line.split() if not _DATE.fullmatch(word) or header is _JSTAT]
    if header.search(line):
        names[:] = words
    cells = words[-len(names) :]
    if not names or len(words) < len(names) or not all(map(_NUMBER.fullmatch, cells)):
        return {}
    row = dict(zip(names, cells, strict=True))
    return {name: cell for name, cell in row.items() if cell != _NO_VALUE}


def read_sar(source: Source) -> Table | None:
    """`sar -r`, or `sadf -d` of it: one row of kilobytes per interval; the header is repeated."""
    names: list[str] = []

    def row_of(line: str) -> Row | None:
        if "kbmemfree" in names[1:]:  # behind "09:00:01 AM"
            del names[: names.index("kbmemfree")]
        cells = _below(_SAR, line.replace(";", " "), names)
        known = {_SAR_NAMES[key]: f"{cell} KiB" for key, cell in cells.items() if key in _SAR_NAMES}
        return known if clock_in(line) and known else None

    return table_of_lines(source, row_of)


def read_atopsar(source: Source) -> Table | None:
    """`atopsar -m`: one row per interval, with a letter behind each number."""
    names: list[str] = []

    def in_bytes(cell: re.Match[str]) -> str:
        return f"{float(cell[1]) * (units.bytes_per_unit(f'{cell[2]}iB') or 1):.0f}"

    def row_of(line: str) -> Row | None:
        cells = _below(_ATOPSAR, _WITH_LETTER.sub(in_bytes, line), names)
        if names[-1:] == ["_mem_"]:
            names.pop()
        return {"host_available": f"{_available(cells)['host_available']} B"} if cells else None

    return table_of_lines(source, row_of)


def read_vmstat(source: Source) -> Table | None:
    """`vmstat N`, with or without `-t`. Numbers are in the unit that the machine's size shows."""
    names: list[str] = []

    def row_of(line: str) -> Row | None:
        cells = _below(_VMSTAT, line, names)
        if not cells:
            return None
        if "cache" in cells:
            return {**_available(cells), "swap_used": cells["swpd"]}
        return {"host_free": cells["free"], "swap_used": cells["swpd"]}

    table = table_of_lines(source, row_of)
    if table is None:
        return None
    return in_unit_of_machine(table, next(n for n in _SIZES if n in table.names), "vmstat")


def read_vm_stat(source: Source) -> Table | None:
    """`vm_stat N` of macOS, or `vm_stat` in a loop: the pages that programs use."""
    names: list[str] = []
    pages: dict[str, float] = {}
    page_bytes = 0

    def row_of(line: str) -> Row | None:
        nonlocal page_bytes
        if (size := _VM_STAT.match(line)) is not None:
            page_bytes = int(size[1])
        one = _VM_STAT_LINE.match(line)
        cells = {_VM_STAT_LINES[one[1]]: one[2]} if one else _below(_VM_STAT_NAMES, line, names)
        pages.update((name, float(cells[name])) for name in _VM_STAT_USED & cells.keys())
        if len(pages) < len(_VM_STAT_USED):
            return None
        used = page_bytes * sum(pages.values())
        pages.clear()
        return {"host_used": f"{used:.0f} B"}

    return table_of_lines(source, row_of)


def _available(cells: Mapping[str, str]) -> Row:
    """Free memory, buffers and cache together are available."""
    parts = next(parts for parts in _FREE_PARTS if cells.keys() >= set(parts))
    return {"host_available": f"{sum(float(cells[part]) for part in parts):.0f}"}


def read_nmon(source: Source) -> Table | None:
    """nmon: the rows `MEM` in MiB, each below a row `ZZZZ` with the time."""
    names: list[str] = []

    def row_of(line: str) -> Row | None:
        cells = line.split(",")
        if _NMON.match(line):
            names[:] = cells
        elif cells[0] == "MEM" and len(cells) == len(names):
            free = _available(dict(zip(names, cells, strict=True)))["host_available"]
            return {"host_available": f"{free} MiB"}
        return None

    return table_of_lines(source, row_of)


def read_jstat(source: Source) -> Table | None:
    """`jstat -gc` and `jstat -gcutil` of a JVM."""
    names: list[str] = []

    def row_of(line: str) -> Row | None:
        cells = _below(_JSTAT, line, names)
        return {_JSTAT_NAMES[n]: cell for n, cell in cells.items() if n in _JSTAT_NAMES} or None

    return table_of_lines(source, row_of)


def is_proc(source: Source) -> bool:
    """Return True if the head consists of keys and values as files in /proc have them, or the
    memory.stat of a cgroup.
    """
    lines = [line.rstrip() for line in source.head().split("\n")[:HEAD_LINES] if line.strip()]
    return any(
        all(every.match(line) or clock_in(line) or seconds_alone(line) for line in lines)
        and any((key := one.match(line)) is not None and key[1] in names for line in lines)
        for one, every, names in ((_KEY, _ANY_KEY, _PROC), (_CGROUP_KEY, _CGROUP_KEY, _CGROUP))
    )


def read_proc(source: Source) -> Table | None:
    """Copies of /proc/PID/status, /proc/PID/smaps_rollup, /proc/meminfo or memory.stat below each
    other.
    """

    def row_of(line: str) -> Row | None:
        if (in_bytes := _CGROUP_KEY.match(line.rstrip())) is not None:
            return _cgroup_cell(*in_bytes.groups())
        key, _, rest = line.partition(":")
        return _proc_cell(key, rest.strip()) if _ANY_KEY.match(line) else None

    return table_of_lines(source, row_of)


def _proc_cell(key: str, text: str) -> Row:
    if key in {"Pid", "Name"}:
        return {"pid" if key == "Pid" else "process": text}
    kib = text.removesuffix(" kB")
    return {_PROC[key]: f"{kib} KiB"} if key in _PROC and kib.isdigit() else {}


def _cgroup_cell(key: str, number: str) -> Row:
    return {_CGROUP[key]: f"{number} B"} if key in _CGROUP else {}

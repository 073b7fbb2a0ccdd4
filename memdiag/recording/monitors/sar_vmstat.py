"""What a system reports: sar, vmstat, jstat, nmon, copies of files in /proc, and the tools that
print a line per reading: for containers, GPUs, and the mappings of a process.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from memdiag.recording.inputs.paste_cleanup import without_escapes
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.ps_top_free import (
    TICK,
    Row,
    all_lines,
    clock_in,
    in_unit_of_machine,
)
from memdiag.recording.tables.table import Table

_HEAD_LINES = 60
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}:[0-9]{2}:[0-9]{2}|[A-Z]{3,4}")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)?")

_SAR = re.compile(r"\bkbmemfree\b.*\bkbmemused\b")
_SAR_NAMES = {"kbmemused": "host_used", "kbavail": "host_available", "kbmemfree": "host_free"}
_SAR_NAMES |= {"kbcached": "host_cached"}
_VMSTAT = re.compile(r"\bswpd\s+free\s+(?:buff\s+cache|inact\s+active)\b")
# Of the JVM: the old generation, of which collections leave what is in use, in KiB and in percent.
_JSTAT = re.compile(r"\bE[CU]?\b.*\bO[CU]?\b.*\bYGC\s+YGCT\b")
_JSTAT_NAMES = {"OU": "old heap (KiB)", "O": "old heap (%)", "MU": "metaspace memory (KiB)"}
_NMON = re.compile(r"^MEM,Memory .*\bmemfree\b")
_NMON_TIME = re.compile(r"^ZZZZ,T[0-9]+,([0-9:]{7,8})")
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

# Tools that print a line per reading: what shows them, the patterns of their lines, and what the
# groups of these are. The MB of GPU tools are MiB.
_Lines = tuple[tuple[str, ...], dict[str, tuple[str, ...]]]
_CONTAINERS: _Lines = (
    (r"\bMEM USAGE / LIMIT\b", r"\bCPU\(cores\)\s+MEMORY\(bytes\)"),
    {
        r"^\s*[0-9a-f]{12,64}\s+(\S+)\s.*?\s([0-9.]+ ?[KMGT]?i?B) / ": ("container", "memory"),
        r"^\s*(\S.*?)\s+[0-9]+[mun]?\s+([0-9]+(?:[KMGT]i?)?)\s*$": ("container", "memory"),
    },
)
_GPUSTAT_ROW = r"\[([0-9]{1,3})\] [^|]+\|[^|]*\|\s*([0-9]+) / [0-9]+ MB"
_GPUSTAT: _Lines = ((_GPUSTAT_ROW,), {_GPUSTAT_ROW: ("gpu", "memory.used [MiB]")})
_TEGRASTATS: _Lines = (  # GPU and host share the memory
    (r"\bRAM [0-9]+/[0-9]+MB\b.*\bCPU \[",),
    {r"\bRAM ([0-9]+)/[0-9]+MB\b": ("host_used (MiB)",)},
)
_ROCM_ROW = r"GPU\[([0-9]{1,3})\]\s*: VRAM Total Used Memory \(B\): ([0-9]+)"
_ROCM: _Lines = (
    (_ROCM_ROW, r"^GPU\s.*\sVRAM%\s+GPU%"),
    {
        _ROCM_ROW: ("gpu", "vram_bytes"),
        r"^([0-9]{1,3})\s.*\s([0-9]+)%\s+[0-9]+%\s*$": ("gpu", "vram_percent"),
    },
)
_NPU: _Lines = (
    (r"^\| npu-smi [0-9]",),
    {
        r"^\|[^|]*\|\s*([0-9A-F]{4}:[0-9A-F:.]+)\s*\|.*\s([0-9]+)\s*/\s*[0-9]+\s*\|$": (
            "gpu",
            "memory.used [MiB]",
        )
    },
)
_PMAP_ROW = r"^\s*total kB\s+([0-9]+)\s+([0-9]+)\s+[0-9]+\s*$"
_PMAP: _Lines = ((_PMAP_ROW,), {_PMAP_ROW: ("vms (KiB)", "rss (KiB)")})
# R's `gc()`: its Mb are MiB.
_R_GC: _Lines = (
    (r"^\s*used\s+\(Mb\)\s+gc trigger",),
    {
        r"^Ncells\s+[0-9]+\s+([0-9.]+)\s": ("heap of cells (MiB)",),
        r"^Vcells\s+[0-9]+\s+([0-9.]+)\s": ("heap of vectors (MiB)",),
    },
)
# Android's `dumpsys meminfo`: its first column is PSS.
_DUMPSYS: _Lines = (
    (r"^\*\* MEMINFO in pid [0-9]+",),
    {
        r"^Uptime: ([0-9]+) Realtime:": ("uptime (ms)",),
        r"^\s*TOTAL\s+([0-9]+)\s": ("pss (KiB)",),
        r"^\s*Native Heap\s+([0-9]+)\s": ("native heap (KiB)",),
        r"^\s*Dalvik Heap\s+([0-9]+)\s": ("dalvik heap (KiB)",),
    },
)


def _in_head(*patterns: re.Pattern[str]) -> Callable[[Source], bool]:
    """Return a sniffer for sources with one of these patterns in their first lines."""

    def sniff(source: Source) -> bool:
        head = without_escapes(source.head().encode()).decode()
        lines = head.split("\n")[:_HEAD_LINES]
        return any(pattern.search(line) for line in lines for pattern in patterns)

    return sniff


is_sar = _in_head(_SAR)
is_vmstat = _in_head(_VMSTAT)
is_jstat = _in_head(_JSTAT)
is_nmon = _in_head(_NMON)


def _below(header: re.Pattern[str], line: str, names: list[str]) -> dict[str, str]:
    """The numbers of a row by the names in the last header, which `names` keeps; {} for others."""
    words = [word for word in line.split() if not _DATE.fullmatch(word) or header is _JSTAT]
    if header.search(line):
        names[:] = words
    cells = words[-len(names) :]
    if not names or len(words) < len(names) or not all(map(_NUMBER.fullmatch, cells)):
        return {}
    return dict(zip(names, cells, strict=True))


def read_sar(source: Source) -> Table | None:
    """`sar -r`: one row of kilobytes per interval; the header is repeated."""
    names: list[str] = []

    def row_of(line: str) -> Row | None:
        if "kbmemfree" in names[1:]:  # behind "09:00:01 AM"
            del names[: names.index("kbmemfree")]
        cells = _below(_SAR, line, names)
        known = {_SAR_NAMES[key]: f"{cell} KiB" for key, cell in cells.items() if key in _SAR_NAMES}
        return known if clock_in(line) and known else None

    return table_of_lines(source, row_of)


def read_vmstat(source: Source) -> Table | None:
    """`vmstat N`, with or without `-t`. Numbers are in the unit that the machine's size shows."""
    names: list[str] = []

    def row_of(line: str) -> Row | None:
        cells = _below(_VMSTAT, line, names)
        if not cells:
            return None
        free = _available(cells) if "cache" in cells else {"host_free": cells["free"]}
        return {**free, "swap_used": cells["swpd"]}

    table = table_of_lines(source, row_of)
    return None if table is None else in_unit_of_machine(table, "host_available", "vmstat")


def _available(cells: Mapping[str, str]) -> Row:
    """Free memory, buffers and cache together are available."""
    parts = next(parts for parts in _FREE_PARTS if cells.keys() >= set(parts))
    return {"host_available": f"{sum(float(cells[part]) for part in parts):.0f}"}


def read_nmon(source: Source) -> Table | None:
    """nmon: the rows `MEM` in MiB, each below a row `ZZZZ` with the time."""
    names: list[str] = []
    time = ""

    def row_of(line: str) -> Row | None:
        nonlocal time
        cells = line.split(",")
        if (found := _NMON_TIME.match(line)) is not None:
            time = found[1]
        elif _NMON.match(line):
            names[:] = cells
        elif cells[0] == "MEM" and len(cells) == len(names):
            free = _available(dict(zip(names, cells, strict=True)))["host_available"]
            return {**_time(time), "host_available": f"{free} MiB"}
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
    lines = [line.rstrip() for line in source.head().split("\n")[:_HEAD_LINES] if line.strip()]
    return any(
        all(every.match(line) or clock_in(line) for line in lines)
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


def _reader(tool: _Lines) -> tuple[Callable[[Source], bool], Callable[[Source], Table | None]]:
    """The sniffer and the reader of a tool in a loop."""
    patterns = {re.compile(pattern): names for pattern, names in tool[1].items()}

    def row_of(line: str) -> Row | None:
        """The cells of the first pattern that matches."""
        hits = ((pattern.search(line), names) for pattern, names in patterns.items())
        hit = next(((found, names) for found, names in hits if found is not None), None)
        return None if hit is None else dict(zip(hit[1], hit[0].groups(), strict=True))

    return _in_head(*map(re.compile, tool[0])), lambda source: table_of_lines(source, row_of)


LINE_TOOLS = {
    "containers": _reader(_CONTAINERS),
    "gpustat": _reader(_GPUSTAT),
    "tegrastats": _reader(_TEGRASTATS),
    "rocm-smi": _reader(_ROCM),
    "npu-smi": _reader(_NPU),
    "pmap": _reader(_PMAP),
    "dumpsys": _reader(_DUMPSYS),
    "r-gc": _reader(_R_GC),
}
"""Sniffers and readers of the tools that print a line per reading, by the name of the format."""


def table_of_lines(source: Source, row_of: Callable[[str], Row | None]) -> Table | None:
    """The cells of all lines; a row ends where one of its names comes again. A time of day on a
    line without cells dates the rows below it.
    """
    rows: list[Row] = [{}]
    time = ""
    for line in all_lines(source):
        cells, own = row_of(line), clock_in(line)
        if cells is None:
            if own and rows[-1]:
                rows.append({})
            time = own or time
        elif cells:
            if not rows[-1].keys().isdisjoint(cells):
                rows.append({})
            rows[-1] = {**_time(own or time), **rows[-1], **cells}
    return _rows(rows)


def _time(clock: str) -> Row:
    return {"time": clock} if clock else {}


def _rows(rows: Sequence[Row]) -> Table | None:
    """The rows as columns. Without a time, one round over all GPUs or containers is one sample."""
    rows = [row for row in rows if row]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return None
    columns: dict[str, Sequence[str | None]] = {n: [row.get(n) for row in rows] for n in names}
    if "time" not in columns:
        columns = {TICK: _ticks(rows), **columns}
    return Table.of(pl.DataFrame(columns))


def _ticks(rows: Iterable[Row]) -> list[str]:
    """For each row, the number of earlier rows of its GPU or container."""
    before: Counter[str] = Counter()
    numbers = []
    for row in rows:
        which = row.get("gpu", "") or row.get("container", "")
        numbers.append(str(before[which]))
        before[which] += 1
    return numbers

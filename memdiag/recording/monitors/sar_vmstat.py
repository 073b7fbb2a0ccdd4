"""What a system reports: sar, vmstat, copies of files in /proc, containers, and the GPU monitors
gpustat, tegrastats and rocm-smi.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from memdiag.recording.inputs.paste_cleanup import without_escapes
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.ps_top_free import TICK, Row, all_lines, clock_in
from memdiag.recording.tables.table import Table

_HEAD_LINES = 60
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}:[0-9]{2}:[0-9]{2}|[A-Z]{3,4}")

_SAR = re.compile(r"\bkbmemfree\b.*\bkbmemused\b")
_SAR_NAMES = {"kbmemused": "host_used", "kbavail": "host_available", "kbmemfree": "host_free"}
_SAR_NAMES |= {"kbcached": "host_cached"}
_VMSTAT = re.compile(r"\bswpd\s+free\s+buff\s+cache\b")

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

_STATS = re.compile(r"\bMEM USAGE / LIMIT\b")
_STATS_ROW = re.compile(r"^\s*[0-9a-f]{12,64}\s+(\S+)\s.*?\s([0-9.]+ ?[KMGT]?i?B) / ")
_TOP = re.compile(r"\bCPU\(cores\)\s+MEMORY\(bytes\)")
_TOP_ROW = re.compile(r"^\s*(\S.*?)\s+[0-9]+[mun]?\s+([0-9]+(?:[KMGT]i?)?)\s*$")

_GPUSTAT = re.compile(r"\[([0-9]{1,3})\] [^|]+\|[^|]*\|\s*([0-9]+) / [0-9]+ MB")
_TEGRASTATS = re.compile(r"\bRAM [0-9]+/[0-9]+MB\b.*\bCPU \[")
_TEGRASTATS_ROW = re.compile(r"\bRAM ([0-9]+)/[0-9]+MB\b")
_ROCM = re.compile(r"GPU\[([0-9]{1,3})\]\s*: VRAM Total Used Memory \(B\): ([0-9]+)")


def _in_head(*patterns: re.Pattern[str]) -> Callable[[Source], bool]:
    """Return a sniffer for sources with one of these patterns in their first lines."""

    def sniff(source: Source) -> bool:
        head = without_escapes(source.head().encode()).decode()
        lines = head.split("\n")[:_HEAD_LINES]
        return any(pattern.search(line) for line in lines for pattern in patterns)

    return sniff


is_sar = _in_head(_SAR)
is_vmstat = _in_head(_VMSTAT)
is_containers = _in_head(_STATS, _TOP)
is_gpustat = _in_head(_GPUSTAT)
is_tegrastats = _in_head(_TEGRASTATS)
is_rocm = _in_head(_ROCM)


def read_sar(source: Source) -> Table | None:
    """`sar -r`: one row of kilobytes per interval; the header is repeated."""
    names: list[str] = []

    def row_of(line: str) -> Row | None:
        nonlocal names
        words = line.split()
        if "kbmemused" in words:
            names = words[words.index("kbmemfree") :]
        elif names and (time := clock_in(line)) and len(words) > len(names):
            cells = zip(names, words[-len(names) :], strict=True)
            known = {_SAR_NAMES[key]: f"{cell} KiB" for key, cell in cells if key in _SAR_NAMES}
            return {"time": time, **known}
        return None

    return _table(source, row_of)


def read_vmstat(source: Source) -> Table | None:
    """`vmstat N`, with or without `-t`. Free memory, buffers and cache together are available."""
    names: list[str] = []

    def row_of(line: str) -> Row | None:
        nonlocal names
        words = [word for word in line.split() if not _DATE.fullmatch(word)]
        if "swpd" in words:
            names = words
        elif names and len(words) == len(names) and all(word.isdigit() for word in words):
            kib = {name: int(word) for name, word in zip(names, words, strict=True)}
            free = kib["free"] + kib["buff"] + kib["cache"]
            cells = {"host_available": f"{free} KiB", "swap_used": f"{kib['swpd']} KiB"}
            return {**_time(clock_in(line)), **cells}
        return None

    table = _table(source, row_of)
    note = "the numbers of vmstat are taken as KiB, its default: -S M prints others"
    return None if table is None else replace(table, notes=(*table.notes, note))


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

    A copy ends where one of its keys is repeated. A line with a time of day dates the next copies.
    """
    rows: list[Row] = []
    row: Row = {}
    seen: set[str] = set()
    time = ""
    for line in all_lines(source):
        in_bytes = _CGROUP_KEY.match(line.rstrip())
        key, rest = in_bytes.groups() if in_bytes else line.partition(":")[::2]
        if in_bytes or _ANY_KEY.match(line):
            if key in seen:
                rows.append(row)
                row, seen = {}, set()
            seen.add(key)
            cell = _cgroup_cell(key, rest) if in_bytes else _proc_cell(key, rest.strip())
            row |= _time(time) | cell
        else:
            time = clock_in(line) or time
    return _rows([*rows, row])


def _proc_cell(key: str, text: str) -> Row:
    if key in {"Pid", "Name"}:
        return {"pid" if key == "Pid" else "process": text}
    kib = text.removesuffix(" kB")
    return {_PROC[key]: f"{kib} KiB"} if key in _PROC and kib.isdigit() else {}


def _cgroup_cell(key: str, number: str) -> Row:
    return {_CGROUP[key]: f"{number} B"} if key in _CGROUP else {}


def read_containers(source: Source) -> Table | None:
    """`docker stats` or `kubectl top pod` in a loop: the memory of each container."""
    pattern = _TOP_ROW if _TOP.search(source.head()) else _STATS_ROW
    return _table(source, _matched(pattern, "container", "memory"))


def read_gpustat(source: Source) -> Table | None:
    """`gpustat` in a loop: one line per GPU. Its MB are MiB."""
    return _table(source, _matched(_GPUSTAT, "gpu", "memory.used [MiB]"))


def read_rocm(source: Source) -> Table | None:
    """`rocm-smi --showmeminfo vram` in a loop."""
    return _table(source, _matched(_ROCM, "gpu", "vram_bytes"))


def read_tegrastats(source: Source) -> Table | None:
    """`tegrastats`: one line per interval. GPU and host share the memory; its MB are MiB."""

    def row_of(line: str) -> Row | None:
        found = _TEGRASTATS_ROW.search(line)
        return {**_time(clock_in(line)), "host_used": f"{found[1]} MiB"} if found else None

    return _table(source, row_of)


def _matched(pattern: re.Pattern[str], *names: str) -> Callable[[str], Row | None]:
    """Rows of the lines that match, with a cell for each group."""

    def row_of(line: str) -> Row | None:
        found = pattern.search(line)
        return dict(zip(names, found.groups(), strict=True)) if found else None

    return row_of


def _table(source: Source, row_of: Callable[[str], Row | None]) -> Table | None:
    """A row for each line that has one. A time of day on another line dates the rows below it."""
    rows: list[Row] = []
    time = ""
    for line in all_lines(source):
        if (row := row_of(line)) is not None:
            rows.append({**_time(time), **row})
        else:
            time = clock_in(line) or time
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

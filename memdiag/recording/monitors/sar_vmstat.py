"""What a system says of itself: sar, vmstat and copies of files in /proc, and what monitors of GPUs
say beside nvidia-smi: gpustat, tegrastats, rocm-smi.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from memdiag.recording.inputs.paste_cleanup import without_escapes
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.ps_top_free import TICK, Row, all_lines, as_table, clock_in
from memdiag.recording.tables.table import Table

_HEAD_LINES = 60
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}:[0-9]{2}:[0-9]{2}|[A-Z]{3,4}")

_SAR = {"kbmemused": "host_used", "kbavail": "host_available", "kbmemfree": "host_free"}
_SAR |= {"kbcached": "host_cached"}

# `VmRSS:  823 kB` of /proc/PID/status, `MemFree: ...` of meminfo, `Pss: ...` of smaps_rollup.
_KEY = re.compile(r"([A-Za-z_]+)(?:\([a-z_]+\))?:\s+([0-9]+) kB$")
_ANY_KEY = re.compile(r"[A-Za-z_0-9()]+:\s|.*\[rollup\]$")
_PROC = {"VmRSS": "rss", "VmHWM": "peak_rss", "VmSize": "vms", "VmSwap": "swap", "RssAnon": "anon"}
_PROC |= {"MemAvailable": "host_available", "MemFree": "host_free", "Cached": "host_cached"}
_PROC |= {"Rss": "rss", "Pss": "pss", "Swap": "swap"}

_STATS = re.compile(r"\bMEM USAGE / LIMIT\b")
_STATS_ROW = re.compile(r"[0-9a-f]{12,64}\s+(\S+)\s.*?\s([0-9.]+ ?[KMGT]?i?B) / ")
_TOP = re.compile(r"\bCPU\(cores\)\s+MEMORY\(bytes\)")
_TOP_ROW = re.compile(r"(\S.*?)\s+[0-9]+[mun]?\s+([0-9]+(?:[KMGT]i?)?)$")

_GPUSTAT = re.compile(r"\[([0-9]{1,3})\] [^|]+\|[^|]*\|\s*([0-9]+) / [0-9]+ MB")
_TEGRASTATS = re.compile(r"\bRAM ([0-9]+)/[0-9]+MB\b")
_ROCM = re.compile(r"GPU\[([0-9]{1,3})\]\s*: VRAM Total Used Memory \(B\): ([0-9]+)")


def read_sar(source: Source) -> Table | None:
    """`sar -r`: a row of kilobytes per interval, its header again and again."""
    if not _heads(source, r"\bkbmemfree\b.*\bkbmemused\b"):
        return None
    rows: list[Row] = []
    names: list[str] = []
    for line in all_lines(source):
        words = line.split()
        if "kbmemused" in words:
            names = words[words.index("kbmemfree") :]
        elif names and (time := clock_in(line)) and len(words) > len(names):
            cells = dict(zip(names, words[-len(names) :], strict=True))
            rows.append({"time": time, **_known(cells, _SAR)})
    return _rows(rows)


def read_vmstat(source: Source) -> Table | None:
    """`vmstat N`, with `-t` or without. Its figures are KiB, as it prints by default; what is free,
    buffer or cache is available.
    """
    if not _heads(source, r"\bswpd\s+free\s+buff\s+cache\b"):
        return None
    rows: list[Row] = []
    names: list[str] = []
    for line in all_lines(source):
        words = [word for word in line.split() if not _DATE.fullmatch(word)]
        if "swpd" in words:
            names = words
        elif names and len(words) == len(names) and all(word.isdigit() for word in words):
            kib = {name: int(word) for name, word in zip(names, words, strict=True)}
            free = kib["free"] + kib["buff"] + kib["cache"]
            cells = {"host_available": f"{free} KiB", "swap_used": f"{kib['swpd']} KiB"}
            rows.append({**_time(clock_in(line)), **cells})
    return _rows(rows)


def read_proc(source: Source) -> Table | None:
    """Copies of /proc/PID/status, /proc/PID/smaps_rollup or /proc/meminfo below each other.

    A copy ends where one of its keys comes again. Lines with a time of day date what follows.
    """
    lines = [line for line in source.head().split("\n")[:_HEAD_LINES] if line.strip()]
    keys = {found[1] for line in lines if (found := _KEY.match(line.rstrip()))}
    others = [line for line in lines if not _ANY_KEY.match(line.rstrip()) and not clock_in(line)]
    if not keys & _PROC.keys() or others:
        return None
    rows: list[Row] = []
    row: Row = {}
    seen: set[str] = set()
    time = ""
    for line in all_lines(source):
        key, _, rest = line.partition(":")
        if _ANY_KEY.match(line):
            if key in seen:
                rows.append(row)
                row, seen = {}, set()
            seen.add(key)
            row |= _time(time) | _told(key, rest.strip())
        else:
            time = clock_in(line) or time
    return _rows([*rows, row])


def _told(key: str, text: str) -> Row:
    if key == "Pid":
        return {"pid": text}
    if key == "Name":
        return {"process": text}
    figure = text.removesuffix(" kB")
    return {_PROC[key]: f"{figure} KiB"} if key in _PROC and figure.isdigit() else {}


def read_containers(source: Source) -> Table | None:
    """`docker stats` or `kubectl top pod` in a loop: the memory of each container."""
    if not _heads(source, f"{_STATS.pattern}|{_TOP.pattern}"):
        return None
    rows: list[Row] = []
    time, top = "", False
    for line in all_lines(source):
        plain = line.strip()
        if _STATS.search(plain) or _TOP.search(plain):
            top = _TOP.search(plain) is not None
        elif found := (_TOP_ROW if top else _STATS_ROW).match(plain):
            rows.append({**_time(time), "container": found[1], "memory": found[2]})
        else:
            time = clock_in(plain) or time
    return _rows(rows)


def read_gpustat(source: Source) -> Table | None:
    """`gpustat` again and again: a line per GPU. Its MB are MiB."""
    return _by_gpu(source, _GPUSTAT, "memory.used [MiB]")


def read_rocm(source: Source) -> Table | None:
    """`rocm-smi --showmeminfo vram` again and again."""
    return _by_gpu(source, _ROCM, "vram_bytes")


def _by_gpu(source: Source, pattern: re.Pattern[str], name: str) -> Table | None:
    """Lines of a GPU and a figure, dated by the lines between them."""
    if not _heads(source, pattern.pattern):
        return None
    rows: list[Row] = []
    time = ""
    for line in all_lines(source):
        if found := pattern.search(line):
            rows.append({**_time(time), "gpu": found[1], name: found[2]})
        else:
            time = clock_in(line) or time
    return _rows(rows)


def read_tegrastats(source: Source) -> Table | None:
    """`tegrastats`: a line per interval; the memory is the GPU's too. Its MB are MiB."""
    if not _heads(source, r"\bRAM [0-9]+/[0-9]+MB\b.*\bCPU \["):
        return None
    rows: list[Row] = []
    for line in all_lines(source):
        if found := _TEGRASTATS.search(line):
            rows.append({**_time(clock_in(line)), "host_used": f"{found[1]} MiB"})
    return _rows(rows)


def _heads(source: Source, pattern: str) -> bool:
    head = without_escapes(source.head().encode()).decode()
    return any(re.search(pattern, line) for line in head.split("\n")[:_HEAD_LINES])


def _known(cells: Row, names: Row) -> Row:
    """The cells of interest under our names, in KiB."""
    return {names[key]: f"{cell} KiB" for key, cell in cells.items() if key in names}


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
    return as_table(pl.DataFrame(columns))


def _ticks(rows: Iterable[Row]) -> list[str]:
    """For each row, how many of its GPU or container came before it."""
    before: Counter[str] = Counter()
    numbers = []
    for row in rows:
        which = row.get("gpu", "") or row.get("container", "")
        numbers.append(str(before[which]))
        before[which] += 1
    return numbers

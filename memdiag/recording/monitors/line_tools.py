"""Tools that print a line per reading, in a loop: for containers, GPUs, and memory of a process.

And the rows of what is printed line by line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from memdiag.recording.inputs.paste_cleanup import without_escapes
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import TICK, Row, all_lines, clock_in
from memdiag.recording.tables.dated_sections import seconds_alone
from memdiag.recording.tables.table import Table

HEAD_LINES = 60
_LETTER = re.compile("(?<=[0-9])[KMGT]$")

# Tools that print a line per reading: what shows them, the patterns of their lines, and what the
# groups of these are. The MB of GPU tools are MiB.
_Lines = tuple[tuple[str, ...], dict[str, tuple[str, ...]]]
_DOCKER_ROW = (  # `3f2a9c1b7d4e   train   101.2%   1.211GiB / 62.7GiB   1.93%   1.2kB / 0B`
    r"^\s*[0-9a-f]{8,64}\s+\S+\s+[0-9.]+%\s+[0-9.]+[KMGT]?i?B / [0-9.]+[KMGT]?i?B\s+[0-9.]+%\s"
)
# `docker stats --format "{{.Name}} {{.CPUPerc}} {{.MemUsage}}"`: `train 101.2% 1.211GiB / 62.7GiB`;
# below a header the share of the CPU may be missing.
_NAME, _OF_LIMIT = r"^\s*([A-Za-z_][\w.-]*):?", r"\s+([0-9.]+[KMGT]?i?B) / [0-9.]+[KMGT]?i?B\b"
_NAMED_ROW = rf"{_NAME}(?:\s+[0-9.]+%)*{_OF_LIMIT}"
# `systemd-cgtop -b` into a file, which has no header: `system.slice   183   23.6     2.4G   -   -`.
_CGTOP_ROW = (
    r"^(?:/|/?(?:\S+/)?[\w.@:\\-]+\.(?:slice|service|scope)(?:/\S+)?)\s+(?:[0-9]+|-)\s+(?:[0-9.]+|-)"
    r"\s+[0-9.]+[BKMGT](?:\s+(?:[0-9.]+[BKMGT]?|-)){2}\s*$"
)
_CONTAINERS: _Lines = (
    (
        _DOCKER_ROW,
        _CGTOP_ROW,
        r"\bMEM USAGE / LIMIT\b",
        rf"{_NAME}\s+[0-9.]+%{_OF_LIMIT}",
        r"\bdocker\s+stats\b.{0,300}\.MemUsage\b",
        r"\bCPU\(cores\)\s+MEMORY\(bytes\)",
        r"^CONTAINER\s+NAME\s+CPU %\s+MEM\s+DISK\b",
        r"^Control Group\s+Tasks\s+%CPU\s+Memory\b",
    ),
    {
        r"^(\S+)\s+[0-9-]+\s+[0-9.-]+\s+([0-9.]+[KMGT]?)\s+\S+\s+\S+\s*$": ("container", "memory"),
        r"^\s*[0-9a-f]{8,64}\s+(\S+)\s.*?\s([0-9.]+ ?[KMGT]?i?B) / ": ("container", "memory"),
        _NAMED_ROW: ("container", "memory"),
        r"^[0-9a-f]{8,64}\s+(\S+)\s+[0-9.]+\s+([0-9.]+[kKMGT]?i?B)\s": ("container", "memory"),
        r"^\s*(\S.*?)\s+[0-9]+[mun]?\s+([0-9]+(?:[KMGT]i?)?)\s*$": ("container", "memory"),
    },
)
# `kubectl top pod NAME --no-headers`, `... | grep NAME`: the command is above its rows.
_KUBECTL: _Lines = (
    (r"\bkubectl\s+top\s+pods?\b[^|;]*(?:\s--no-headers\b|\|\s*grep\b)",),
    {r"^\s*(\S+(?:\s+\S+)?)\s+[0-9]+[mun]?\s+([0-9]+[KMGT]i)\s*$": ("container", "memory")},
)
# `systemctl status` again and again: its times are of the start, and of lines of the service's log.
_SYSTEMCTL: _Lines = (
    (r"^\s*Loaded: loaded \(/\S+\.service;",),
    {
        r"^[A-Z][a-z]{2} [0-9 ][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} \S+ \S+\[[0-9]+\]: ": (),
        r"^\s*Active: ": (),
        r"^\s*\W (\S+\.service)(?: - |\s*$)": ("container",),
        r"^\s*Memory: ([0-9.]+[BKMGT])(?:\s|$)": ("memory",),
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
_MONGOSTAT: _Lines = (
    (r"\bvsize\s+res\s+qrw\s+arw\b",),
    {r"\s([0-9.]+[KMGT])\s+([0-9.]+[KMGT])\s+[0-9]+\|[0-9]+\s+[0-9]+\|[0-9]+\s": ("vms", "rss")},
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
# Erlang's `:erlang.memory()` in a shell; the processes are an amount, and part of the total.
_ERLANG: _Lines = (
    (r"^\W*processes_used\W+[0-9]+\W*$",),
    {
        r"^\W*total\W+([0-9]+)\W*$": ("memory (bytes)",),
        r"^\W*processes\W+([0-9]+)\W*$": ("heap of processes (bytes)",),
        r"^\W*binary\W+([0-9]+)\W*$": ("memory of binaries (bytes)",),
        r"^\W*code\W+([0-9]+)\W*$": ("memory of code (bytes)",),
        r"^\W*ets\W+([0-9]+)\W*$": ("memory of ets (bytes)",),
    },
)
# Erlang's `etop -output text`: numbers in two columns of a heading, in KiB.
_ETOP: _Lines = (
    (r"^ Load:\s+cpu\s.*\bMemory:\s+total\s+[0-9]+",),
    {
        r"^ Load:.*\bMemory:\s+total\s+([0-9]+)\s+binary\s+([0-9]+)": (
            "memory (KiB)",
            "memory of binaries (KiB)",
        ),
        r"^\s+procs\s+[0-9]+\s+processes\s+([0-9]+)\s+code\s+([0-9]+)": (
            "heap of processes (KiB)",
            "memory of code (KiB)",
        ),
        r"^\s+runq\s+[0-9]+\s+atom\s+[0-9]+\s+ets\s+([0-9]+)": ("memory of ets (KiB)",),
    },
)
# Haskell's `+RTS -S`: a line per collection, of which there are many in a second.
_GHC: _Lines = (
    (r"^\s*Alloc\s+Copied\s+Live\s+GC\s",),
    {r"^\s*[0-9]+\s+[0-9]+\s+([0-9]+)(?:\s+[0-9.]+){4}\s": ("live heap after GC (bytes)",)},
)
_JMAP: _Lines = (
    (r"\bjmap\s+-histo\b|\bGC\.class_histogram\b", r"^\s*num\s+#instances\s+#bytes\s+class name"),
    {r"^\s*Total\s+([0-9]+)\s+([0-9]+)\s*$": ("java objects", "heap of java objects (bytes)")},
)
# Go's `pprof -top`, of what is in use.
_PPROF: _Lines = (
    (r"^Type: inuse_space\s*$", r"\bpprof\b.{0,300}-inuse_space\b"),
    {
        r"^Time: ([^(\n]{8,40}?)(?: \([A-Z]+\))?\s*$": ("timestamp",),
        r"^Showing nodes accounting for .{1,80} of ([0-9.]+[kMGT]?B) total": ("heap in use",),
    },
)
_MICROPYTHON_ROW = r"^GC: total: [0-9]+, used: ([0-9]+), free: [0-9]+"
_MICROPYTHON: _Lines = ((_MICROPYTHON_ROW,), {_MICROPYTHON_ROW: ("heap used (bytes)",)})
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
# `slabtop -o`: of the pair that is in use and in all.
_SLABTOP_ROW = r"^\s*Active / Total Size \(% used\)\s*: ([0-9.]+)K / "
_SLABTOP: _Lines = ((_SLABTOP_ROW,), {_SLABTOP_ROW: ("memory in slabs (KiB)",)})
# `ps_mem -w`: programs, each the sum of its processes.
_PS_MEM: _Lines = (
    (r"^\s*Private\s+\+\s+Shared\s+=\s+RAM used\s+Program\b",),
    {
        r"\+\s+[0-9.]+ [KMGT]?i?B\s+=\s+([0-9.]+ [KMGT]?i?B)\s+(\S.{0,200}?)(?: \([0-9]+\))?\s*$": (
            "ram used",
            "container",
        )
    },
)
# Munin's plugin of memory, whose `apps` are what programs have, below times since 1970.
_MUNIN: _Lines = (
    (r"^apps\.value [0-9]+\s*$",),
    {
        r"^\W*([0-9]{9,10})\W*$": ("timestamp",),
        **{
            rf"^{name}\.value ([0-9]+)\s*$": (f"host_{name} (bytes)",)
            for name in ("apps", "page_tables", "slab", "swap", "free")
        },
    },
)


def in_head(*patterns: re.Pattern[str]) -> Callable[[Source], bool]:
    """Return a sniffer for sources with one of these patterns in their first lines."""

    def sniff(source: Source) -> bool:
        head = without_escapes(source.head().encode()).decode()
        lines = head.split("\n")[:HEAD_LINES]
        return any(pattern.search(line) for line in lines for pattern in patterns)

    return sniff


def _reader(
    tool: _Lines, behind_letter: str = "", rows_at_least: int = 1
) -> tuple[Callable[[Source], bool], Callable[[Source], Table | None]]:
    """The sniffer and the reader of a tool in a loop.

    behind_letter: completes units of a single letter, `1.2G` (of containers, in systemd-cgtop).
    rows_at_least: with fewer, other lines may have the readings.
    """
    patterns = {re.compile(pattern): names for pattern, names in tool[1].items()}

    def row_of(line: str) -> Row | None:
        """The cells of the first pattern that matches."""
        hits = ((pattern.search(line), names) for pattern, names in patterns.items())
        hit = next(((found, names) for found, names in hits if found is not None), None)
        if hit is None:
            return None
        cells = (_LETTER.sub(rf"\g<0>{behind_letter}", cell) for cell in hit[0].groups())
        return dict(zip(hit[1], cells, strict=True))

    def read(source: Source) -> Table | None:
        table = table_of_lines(source, row_of)
        return None if table is None or len(table) < rows_at_least else table

    return in_head(*map(re.compile, tool[0])), read


LINE_TOOLS = {
    "containers": _reader(_CONTAINERS, "iB"),
    "kubectl": _reader(_KUBECTL),
    "systemctl": _reader(_SYSTEMCTL, "iB", rows_at_least=4),
    "gpustat": _reader(_GPUSTAT),
    "tegrastats": _reader(_TEGRASTATS),
    "rocm-smi": _reader(_ROCM),
    "npu-smi": _reader(_NPU),
    "mongostat": _reader(_MONGOSTAT),
    "pmap": _reader(_PMAP),
    "dumpsys": _reader(_DUMPSYS),
    "erlang": _reader(_ERLANG),
    "etop": _reader(_ETOP),
    "ghc": _reader(_GHC),
    "jmap": _reader(_JMAP),
    "micropython": _reader(_MICROPYTHON),
    "pprof": _reader(_PPROF),
    "r-gc": _reader(_R_GC),
    "slabtop": _reader(_SLABTOP),
    "munin": _reader(_MUNIN),
    "ps_mem": _reader(_PS_MEM),
}
"""Sniffers and readers of the tools that print a line per reading, by the name of the format."""


def table_of_lines(
    source: Source, row_of: Callable[[str], Row | None], *, has_clock: bool = True
) -> Table | None:
    """The cells of all lines; a row ends where one of its names comes again. A time on a line
    without cells dates the rows below it.

    has_clock: a time in a line with cells is its own, not a duration.
    """
    rows: list[Row] = [{}]
    time = ""
    for line in all_lines(source):
        cells, own = row_of(line), clock_in(line)
        if cells is not None and not has_clock:
            own = ""
        if cells is None:
            own = own or seconds_alone(line)
            if own and rows[-1]:
                rows.append({})
            time = own or time
        elif cells:
            if not rows[-1].keys().isdisjoint(cells):
                rows.append({})
            rows[-1] = {**_time(own or time), **rows[-1], **cells}
    return table_of_rows(rows)


def _time(clock: str) -> Row:
    return {"time": clock} if clock else {}


def table_of_rows(rows: Sequence[Row]) -> Table | None:
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
    """For each row, the number of earlier rows of its GPU, container or process."""
    before: Counter[tuple[str, ...]] = Counter()
    numbers = []
    for row in rows:
        which = tuple(row.get(name, "") for name in ("gpu", "container", "pid"))
        numbers.append(str(before[which]))
        before[which] += 1
    return numbers

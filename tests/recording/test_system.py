"""What a system and the monitors of GPUs and containers print, in their own words, in a loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.analysis.diagnose import diagnose
from memdiag.values.measurements import AxisKind, Role, Unit
from memdiag.values.verdict import Verdict

KIB, MIB, GIB = 1024.0, 2.0**20, 2.0**30
N = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a tool prints in its round `i` (`first` only once), and the series that it means."""

    says: Callable[[int], str]
    metric: str
    y: Callable[[int], float]
    first: str = ""
    process: str = ""
    role: Role = Role.HOST
    axis: AxisKind = AxisKind.TICK
    seconds: float = 1.0


def _afternoon(i: int) -> str:
    """From ten to twelve on, on a clock of twelve hours."""
    hour, minute = divmod(11 * 60 + 50 + i, 60)
    return f"{(hour - 1) % 12 + 1:02d}:{minute:02d}:01 {'AM' if hour < 12 else 'PM'}"


SAR_HEADER = "    kbmemfree   kbavail kbmemused  %memused kbbuffers  kbcached  kbcommit   %commit"
STATS_HEADER = "CONTAINER ID   NAME      CPU %     MEM USAGE / LIMIT     MEM %     NET I/O   PIDS\n"

TIMED_PS = Said(
    says=lambda i: (
        f"2024-01-01 09:00:{i:02d} ann   711 99.1  1.{i % 9} {8000 + i} {3000 + 7 * i} ?   Sl"
        f"   08:12   3:{i:02d} python serve.py --port 80\n"
    ),
    metric="rss_bytes",
    y=lambda i: (3000 + 7 * i) * KIB,
    process="python serve.py --port 80",
    role=Role.RESIDENT,
    axis=AxisKind.SECONDS,
)

TOOLS = {
    "sar": Said(
        first="Linux 5.15.0 (host) \t01/01/24 \t_x86_64_\t(16 CPU)\n\n",
        says=lambda i: (
            (f"{_afternoon(i)}{SAR_HEADER}\n" if i % 20 == 0 else "")
            + f"{_afternoon(i)}    {9000 - 50 * i}  {95000 - 7 * i}  30000     25.04    100   "
            f"{5000 + 43 * i}  40000     30.00\n"
        ),
        metric="host_available_bytes",
        y=lambda i: (95000 - 7 * i) * KIB,
        axis=AxisKind.SECONDS,
        seconds=60.0,
    ),
    "vmstat": Said(
        first=" r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n",
        says=lambda i: (
            f" 1  0    512 {9000000 - 50 * i} 100 {5000 + 43 * i} 0 0 1 2 3 4 5  1 94  0  0\n"
        ),
        metric="host_available_bytes",
        y=lambda i: (9005100 - 7 * i) * KIB,
    ),
    "vmstat -S M": Said(
        first=" r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n",
        says=lambda i: f" 1  0    512 {9000 - 7 * i} 100 5000 0 0 1 2 3 4 5  1 94  0  0\n",
        metric="host_available_bytes",
        y=lambda i: (14100 - 7 * i) * MIB,
    ),
    "vmstat -t": Said(
        first=" r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n",
        says=lambda i: (
            f" 1  0    512 {9000000 - 7 * i} 100 5000 0 0 1 2 3 4 5  1 94  0  0"
            f" 2024-01-01 00:00:{i:02d}\n"
        ),
        metric="host_available_bytes",
        y=lambda i: (9005100 - 7 * i) * KIB,
        axis=AxisKind.SECONDS,
    ),
    "/proc/PID/status": Said(
        says=lambda i: (
            "Name:\tpython\nUmask:\t0022\nState:\tS (sleeping)\nPid:\t4711\nVmPeak:\t 9000000 kB\n"
            f"VmSize:\t 8000000 kB\nVmRSS:\t  {1200 + 5 * i} kB\nThreads:\t12\n"
        ),
        metric="rss_bytes",
        y=lambda i: (1200 + 5 * i) * KIB,
        process="python",
        role=Role.RESIDENT,
    ),
    "/proc/PID/smaps_rollup": Said(
        says=lambda i: (
            "5581e0000000-7ffc00000000 ---p 00000000 00:00 0    [rollup]\n"
            f"Rss:    {1300 + 5 * i} kB\nPss:    {1200 + 5 * i} kB\nPss_Dirty:   12 kB\n"
        ),
        metric="pss_bytes",
        y=lambda i: (1200 + 5 * i) * KIB,
        role=Role.PROPORTIONAL,
    ),
    "/proc/meminfo": Said(
        says=lambda i: (
            f"Mon Jan  1 00:00:{i:02d} UTC 2024\nMemTotal:       650000 kB\n"
            f"MemFree:        {9000 - 50 * i} kB\nMemAvailable:   {30000 - 5 * i} kB\n"
            f"Cached:         {2000 + 50 * i} kB\nActive(anon):   1234 kB\nHugePages_Total:  0\n"
        ),
        metric="host_available_bytes",
        y=lambda i: (30000 - 5 * i) * KIB,
        axis=AxisKind.SECONDS,
    ),
    "docker stats": Said(
        says=lambda i: (
            f"\x1b[2J\x1b[H{STATS_HEADER}"
            f"ab12cd34ef56   trainer   101.2%    {1 + i / 128:.3f}GiB / 15.5GiB   7%  1kB / 0B  2\n"
            "ab12cd34ef57   db   1.2%    312.5MiB / 15.5GiB   2%    1.2kB / 0B   12\n"
        ),
        metric="memory_bytes",
        y=lambda i: round(1 + i / 128, 3) * GIB,
        process="trainer",
        role=Role.RESIDENT,
    ),
    "kubectl top pod": Said(
        says=lambda i: (
            "NAME        CPU(cores)   MEMORY(bytes)\n"
            f"other-0     1m           99Mi\ntrainer-0   990m         {1200 + 8 * i}Mi\n"
        ),
        metric="memory_bytes",
        y=lambda i: (1200 + 8 * i) * MIB,
        process="trainer-0",
        role=Role.RESIDENT,
    ),
    "gpustat": Said(
        says=lambda i: (
            f"host  Mon Jan 01 00:00:{i:02d} 2024  535.104.05\n"
            f"\x1b[36m[0]\x1b(B\x1b[m \x1b[34mNVIDIA A100-SXM4-80GB\x1b(B\x1b[m | 45°C, 100 % |"
            f" {20000 + 50 * i} / 81920 MB | user:python/1234({20000 + 50 * i}M)\n"
            "[1] NVIDIA A100-SXM4-80GB | 45°C, 100 % |  2000 / 81920 MB |\n"
        ),
        metric="memory_used_bytes",
        y=lambda i: (20000 + 50 * i) * MIB,
        process="gpu 0",
        role=Role.DEVICE,
        axis=AxisKind.SECONDS,
    ),
    "tegrastats": Said(
        says=lambda i: (
            f"01-01-2024 00:00:{i:02d} RAM {2571 + 20 * i}/15817MB (lfb 2x4MB) SWAP 3/7908MB "
            "(cached 0MB) CPU [12%@1190,off] EMC_FREQ 0% GR3D_FREQ 99% thermal@35.5C\n"
        ),
        metric="host_used_bytes",
        y=lambda i: (2571 + 20 * i) * MIB,
        axis=AxisKind.SECONDS,
    ),
    "rocm-smi": Said(
        says=lambda i: (
            "====== ROCm System Management Interface ======\n"
            "GPU[0]\t\t: VRAM Total Memory (B): 17163091968\n"
            f"GPU[0]\t\t: VRAM Total Used Memory (B): {1085440000 + 5000 * i}\n"
            "GPU[1]\t\t: VRAM Total Memory (B): 17163091968\n"
            "GPU[1]\t\t: VRAM Total Used Memory (B): 10854400\n"
        ),
        metric="vram_bytes",
        y=lambda i: 1085440000 + 5000.0 * i,
        process="gpu 0",
        role=Role.DEVICE,
    ),
    "rocm-smi, concise": Said(
        says=lambda i: (
            "======================== Concise Info ========================\n"
            "GPU  Temp (DieEdge)  AvgPwr  SCLK     Fan  Perf  PwrCap  VRAM%  GPU%\n"
            f"0    51.0c           181.0W  1502Mhz  0%   auto  300.0W   {10 + i}%   98%\n"
        ),
        metric="vram_percent",
        y=lambda i: 10.0 + i,
        role=Role.DEVICE,
    ),
    "dcgmi dmon": Said(
        first="#Entity   GPUTL  FBFRE  FBUSD\nID\n",
        says=lambda i: f"GPU 0     97     {70000 - 9 * i}  {11000 + 9 * i}\n",
        metric="vram_bytes",
        y=lambda i: (11000 + 9 * i) * MIB,
        role=Role.DEVICE,
    ),
    "npu-smi": Said(
        says=lambda i: (
            "| npu-smi 23.0.rc2                 Version: 23.0.rc2                     |\n"
            "| 0     910B1     | OK            | 95.5        45                0 / 0  |\n"
            f"| 0               | 0000:C1:00.0  | 93          0    / 0   {3000 + i} / 65536 |\n"
        ),
        metric="memory_used_bytes",
        y=lambda i: (3000 + i) * MIB,
        process="0000:C1:00.0",
        role=Role.DEVICE,
    ),
    "pmap -x": Said(
        says=lambda i: f"Mon Jan  1 00:00:{i:02d} UTC 2024\ntotal kB   9000000 {1200 + i} 800\n",
        metric="rss_bytes",
        y=lambda i: (1200 + i) * KIB,
        role=Role.RESIDENT,
        axis=AxisKind.SECONDS,
    ),
    "dumpsys meminfo": Said(
        says=lambda i: (
            f"Uptime: {1000 * i} Realtime: 9000\n\n** MEMINFO in pid 31 [app] **\n"
            "                   Pss  Private     Heap     Heap\n"
            f"  Native Heap   {900 + i}   812   2999   2900\n        TOTAL   {1300 + i}   1200\n"
            " App Summary\n                       Pss(KB)\n"
            f"         Native Heap:   {900 + i}\n           TOTAL:   {1300 + i}\n"
        ),
        metric="pss_bytes",
        y=lambda i: (1300 + i) * KIB,
        role=Role.PROPORTIONAL,
        axis=AxisKind.SECONDS,
    ),
    "jstat -gc": Said(
        first=" S0C    S1C    S0U    S1U   EC     EU     OC     OU    MC   MU   YGC   YGCT   GCT\n",
        says=lambda i: (
            f"9.0 9.0 0.0 8.{i} 65536.0 123.0 99999.0 {1200 + i}.5 9.0 8.0 {i} 0.1 0.1\n"
        ),
        metric="old_heap_bytes",
        y=lambda i: (1200.5 + i) * KIB,
        role=Role.COLLECTED_HEAP,
    ),
    "gc() of R": Said(
        says=lambda i: (
            "         used (Mb) gc trigger  (Mb) max used  (Mb)\n"
            "Ncells 652520 34.9    1438668  76.9   818710  43.8\n"
            f"Vcells 178965 {13 + i}.5    8388608  64.0  1963270  15.0\n"
        ),
        metric="heap_of_vectors_bytes",
        y=lambda i: (13.5 + i) * MIB,
        role=Role.COLLECTED_HEAP,
    ),
    "top of macOS": Said(
        says=lambda i: (
            f"2024/01/01 00:00:{i:02d}\nPhysMem: 15G used (2345M wired), 1012M unused.\n\n"
            f"PID    COMMAND      MEM  \n4711   python3.11   {812 + i}M+\n\n"
        ),
        metric="mem_bytes",
        y=lambda i: (812 + i) * MIB,
        process="python3.11",
        role=Role.RESIDENT,
        axis=AxisKind.SECONDS,
    ),
    "nmon": Said(
        first="AAA,progname,nmon\nMEM,Memory MB host,memtotal,memfree,cached,buffers\n",
        says=lambda i: (
            f"ZZZZ,T{i + 1:04d},00:00:{i:02d},01-JAN-2024\nCPU_ALL,T{i + 1:04d},31.2\n"
            f"MEM,T{i + 1:04d},64000.0,{9000 - 7 * i}.0,5000.0,100.0\n"
        ),
        metric="host_available_bytes",
        y=lambda i: (14100 - 7 * i) * MIB,
        axis=AxisKind.SECONDS,
    ),
    "systemctl status": Said(
        says=lambda i: (
            "● relay.service - Relay\n"
            "     Loaded: loaded (/usr/lib/systemd/system/relay.service; enabled)\n"
            "     Active: active (running) since Mon 2024-01-01 03:10:09 CET; 2h ago\n"
            "   Main PID: 812 (relay)\n      Tasks: 4 (limit: 38406)\n"
            f"     Memory: {130 + i}.5M (peak: 900.0M)\n        CPU: 1min 3.2{i % 10}0s\n\n"
            f"Jan 01 05:{i % 60:02d}:09 srv-3 relay[812]: used memory: {i} MB\n\n"
        ),
        metric="memory_bytes",
        y=lambda i: (130.5 + i) * MIB,
        process="relay.service",
        role=Role.RESIDENT,
    ),
    "kubectl top without headers": Said(
        first="$ while sleep $S; do kubectl top pod web-3 -n shop --no-headers; done\n",
        says=lambda i: f"web-3   2{i % 7}m   {90 + i}Mi   \n",
        metric="memory_bytes",
        y=lambda i: (90 + i) * MIB,
        process="web-3",
        role=Role.RESIDENT,
    ),
    "ps aux with a time in front": TIMED_PS,
    "ps aux below its header with a time in front": replace(
        TIMED_PS, first="  USER  PID %CPU %MEM  VSZ  RSS TTY  STAT START  TIME COMMAND\n"
    ),
    "an exporter's page": Said(
        says=lambda i: (
            f"# 2024-01-01T00:00:{i:02d}Z\n# TYPE process_resident_memory_bytes gauge\n"
            f'process_resident_memory_bytes{{pod="a-2"}} {1.5e9 + 1e6 * i:.6e}\n'
            'process_resident_memory_bytes{pod="b-3"} 1.2e+09\n'
            f"go_memstats_alloc_bytes_total {i}e+09\n"
        ),
        metric="process_resident_memory_pod_a_2_bytes",
        y=lambda i: 1.5e9 + 1e6 * i,
        role=Role.RESIDENT,
        axis=AxisKind.SECONDS,
    ),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_what_a_tool_prints_in_a_loop_is_read(tmp_path: Path, tool: str) -> None:
    said = TOOLS[tool]
    text = said.first + "".join(said.says(i) for i in range(N))
    series = series_of(read_log(tmp_path, text), said.metric, said.process)
    np.testing.assert_allclose(series.y, [said.y(i) for i in range(N)], 1e-12)
    assert (series.role, series.axis.kind) == (said.role, said.axis)
    assert series.x.tolist() == [said.seconds * i for i in range(N)]


def test_free_memory_that_becomes_cache_is_no_growth(tmp_path: Path) -> None:
    """Every program that reads files makes cache of free memory; it stays available."""
    text = "".join(
        "               total        used        free      shared  buff/cache   available\n"
        f"Mem:        65000000    10000000    {40000000 - 200000 * i}        1234    "
        f"{15000000 + 200000 * i}    54000000\nSwap:        2097148           0     2097148\n"
        for i in range(N)
    )
    metrics = {s.metric for s in read_log(tmp_path, text).series}
    assert "host_available_bytes" in metrics
    assert "host_free_bytes" not in metrics


def test_of_an_old_free_what_is_used_without_the_cache_counts(tmp_path: Path) -> None:
    text = "".join(
        "             total       used       free     shared    buffers     cached\n"
        f"Mem:      65000000   {25000000 + 200000 * i}   {40000000 - 200000 * i}     0  100000   "
        f"{10000000 + 200000 * i}\n-/+ buffers/cache:   14900000   50100000\n"
        "Swap:      2097148          0    2097148\n"
        for i in range(N)
    )
    series = series_of(read_log(tmp_path, text), "host_used_bytes")
    assert set(series.y.tolist()) == {14900000 * KIB}


def test_a_gpu_without_a_word_of_what_is_available_keeps_what_is_free(tmp_path: Path) -> None:
    text = "step,memory.free [MiB]\n" + "".join(f"{i},{900 - i} MiB\n" for i in range(N))
    assert series_of(read_log(tmp_path, text), "memory_free_bytes").falling


def test_headers_that_come_again_are_no_rows(tmp_path: Path) -> None:
    """Runs that append to one file, each with the header."""
    text = "".join(("rss_mb,loss\n" if i % 8 == 0 else "") + f"{100 + i},0.3\n" for i in range(N))
    recording = read_log(tmp_path, text)
    series = series_of(recording, "rss_bytes")
    assert series.x.tolist() == list(range(N))
    assert not any("without a number" in note for note in recording.notes)


@pytest.mark.parametrize("names", ["Schritt;Speicher (MB)", "步数;显存 (MB)", "step;rss_mb"])
def test_commas_of_decimals_part_no_columns(tmp_path: Path, names: str) -> None:
    text = f"{names}\n" + "".join(f"{i};{1000 + i},5\n" for i in range(N))
    (series,) = read_log(tmp_path, text).series
    assert series.axis.kind is AxisKind.STEP
    assert series.y.tolist() == [(1000.5 + i) * 1e6 for i in range(N)]


def test_an_axis_that_never_moves_is_none(tmp_path: Path) -> None:
    text = "step,rss_mb\n" + "".join(f"0,{100 + i}\n" for i in range(N))
    recording = read_log(tmp_path, text)
    assert series_of(recording, "rss_bytes").x.tolist() == list(range(N))
    assert "no step or time column: the rows are counted" in recording.notes


def test_pidstat_counts_on_over_noon(tmp_path: Path) -> None:
    head = "Linux 5.15.0 (host) \t01/01/24 \t_x86_64_\t(16 CPU)\n\n"
    names = "   UID       PID  minflt/s  majflt/s     VSZ     RSS   %MEM  Command\n"
    text = head + "".join(
        f"{_afternoon(i)}{names}{_afternoon(i)}     0      1234      1.00      0.00  9000000 "
        f"{1200 + 5 * i}   1.00  python\n\n"
        for i in range(N)
    )
    series = series_of(read_log(tmp_path, text), "rss_bytes", "python")
    assert series.x.tolist() == [60.0 * i for i in range(N)]


@pytest.mark.parametrize(("samples", "verdict"), [(15, Verdict.INCONCLUSIVE), (300, Verdict.LEAK)])
def test_ticks_of_a_monitor_are_judged_as_steps(
    tmp_path: Path, samples: int, verdict: Verdict
) -> None:
    """Five minutes of steady growth are what a job does that loads its data, an hour is not."""
    text = "".join(TOOLS["kubectl top pod"].says(i) for i in range(samples))
    assert diagnose(read_log(tmp_path, text)).verdict is verdict


def test_buffers_of_free_are_memory_and_no_count(tmp_path: Path) -> None:
    screen = (
        "             total       used       free     shared    buffers     cached\n"
        "Mem:         15872      {used}      13872          0        100        400\n"
    )
    recording = read_log(tmp_path, "".join(screen.format(used=2000 + n) for n in range(20)))
    buffers = series_of(recording, "host_buffers_bytes")
    assert (buffers.unit, buffers.role) == (Unit.BYTES, Role.CACHE)

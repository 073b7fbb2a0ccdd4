"""Tools that print what a process has again and again: of the JVM, Go, Python and collectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log

from memdiag.errors import ReadError
from memdiag.values.measurements import AxisKind, Recording, Series

N = 12
MIB = 1 << 20


def _column(recording: Recording, name: str) -> Series:
    return next(one for one in recording.series if name in one.column)


def _dated(n: int) -> str:
    return f"Tue Oct  8 {n:02}:00:01 CEST 2024"


def _space(name: str, used: int) -> str:
    return (
        f"{name}\n   capacity = 67108864 (64.0MB)\n   used     = {used} ({used / MIB}MB)\n"
        f"   free     = {67108864 - used} ({64 - used / MIB}MB)\n   {used / 671088.64}% used"
    )


def test_spaces_of_a_heap_have_the_names_above_them(tmp_path: Path) -> None:
    heaps = [
        f"{_dated(n)}\nHeap Configuration:\n   MaxHeapSize              = 99 (0.0MB)\n\n"
        f"Heap Usage:\nPS Young Generation\n{_space('Eden Space:', 5 * MIB)}\n"
        f"{_space('PS Old Generation', (9 + n) * MIB)}\n\n38167 interned Strings"
        for n in range(N)
    ]
    recording = read_log(tmp_path, heaps)
    old = _column(recording, "PS Old Generation")
    assert old.y.tolist() == [(9 + n) * MIB for n in range(N)]
    assert np.diff(old.x).tolist() == [3600] * (N - 1)
    assert set(_column(recording, "Eden").y) == {5 * MIB}
    assert not any("free" in one.column for one in recording.series)


def test_what_a_bean_uses_is_read(tmp_path: Path) -> None:
    beans = [
        f"== 2024-10-26T07:{n:02}:00\n#mbean = java.lang:type=Memory:\nHeapMemoryUsage = {{ \n"
        f"  committed = 90000000;\n  max = 95000000;\n  used = {7000000 + n};\n }};\n\n"
        f"CommittedVirtualMemorySize = {8000000 + n};\nUptime = {n};\n"
        for n in range(N)
    ]
    recording = read_log(tmp_path, beans)
    assert _column(recording, "HeapMemoryUsage used").y[:2].tolist() == [7000000, 7000001]
    assert _column(recording, "VirtualMemorySize").y[0] == 8000000
    assert len(recording.series) == 2


def test_composite_values_of_a_bean_in_a_table(tmp_path: Path) -> None:
    kind = "javax.management.openmbean.CompositeDataSupport(compositeType=x(name=y,items=((z)))"
    rows = [
        f"{1731001200000 + 10000 * n},{kind},contents={{committed=9, init=-1, max=9, "
        f"used={700000 + n}}})"
        for n in range(N)
    ]
    recording = read_log(tmp_path, ['"time","java.lang:type=Memory:HeapMemoryUsage"', *rows])
    (series,) = recording.series
    assert (series.column, series.x[1]) == ("Memory:HeapMemoryUsage used (bytes)", 10)
    assert series.y[:2].tolist() == [700000, 700001]


def _profile(n: int, kind: str = "inuse_space") -> str:
    return (
        f"File: relay\nType: {kind}\nTime: Nov 3, 2024 at {1 + n % 12}:05pm (CET)\n"
        f"Showing nodes accounting for {190 + n}.5MB, 95.1% of {200 + n}.5MB total\n"
        f"      flat  flat%   sum%        cum   cum%\n"
        f"   81.40MB 38.32% 38.32%    92.40MB 43.50%  store.Put\n"
        f"   61.02MB 28.73% 67.04%    61.02MB 28.73%  bufio.NewReader"
    )


def test_profiles_of_go_below_each_other(tmp_path: Path) -> None:
    (series,) = read_log(tmp_path, [_profile(n) for n in range(N - 1)]).series
    assert series.y[:2].tolist() == [200.5e6, 201.5e6]
    assert np.diff(series.x).tolist() == [3600] * (N - 2)


def test_all_that_go_has_ever_allocated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError) as error:
        read_log(tmp_path, [_profile(n, "alloc_space") for n in range(N)])
    assert "inuse_space" in error.value.remedy


def test_what_micropython_uses_is_read_below_other_results(tmp_path: Path) -> None:
    lines = [
        f">>> read(); micropython.mem_info()\n21.{n}\nstack: 720 out of 15360\n"
        f"GC: total: 112000, used: {42000 + n}, free: {70000 - n}, max new split: 69632\n"
        f" No. of 1-blocks: {400 + n}, 2-blocks: 114, max blk sz: 264, max free sz: 2226"
        for n in range(N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.y[:2].tolist() == [42000, 42001]


def _footprint(mb: int) -> str:
    rule = "=" * 70
    return (
        f"{rule}\nPython [4471]: 64-bit    Footprint: {mb} MB (16384 bytes per page)\n{rule}\n\n"
        f"  Dirty      Clean  Reclaimable    Regions    Category\n"
        f"    ---        ---          ---        ---    ---\n"
        f" {mb - 70} MB        0 B          0 B         95    MALLOC_LARGE\n"
        f"  51 MB        0 B       128 KB         41    MALLOC_SMALL\n"
        f'  19 MB        0 B          0 B       1020    untagged ("VM_ALLOCATE")\n\n'
        f"Auxiliary data:\n    phys_footprint_peak: {mb + 3} MB\n"
    )


def test_footprints_of_macos(tmp_path: Path) -> None:
    recording = read_log(tmp_path, [_footprint(608 + 97 * n) for n in range(9)])
    assert _column(recording, "Footprint").y.tolist() == [(608 + 97 * n) * 1e6 for n in range(9)]
    assert _column(recording, "peak").y.tolist() == [(611 + 97 * n) * 1e6 for n in range(9)]
    assert any("0 B" in note for note in recording.notes)


def _traced(n: int) -> str:
    return (
        f"=== round {n}\n/app/feed.py:118: size={4 + n}.5 MiB (+1 MiB), count=9 (+9), average=1 B\n"
        f"/lib/cache.py:137: size=512 KiB (+0 B), count=8 (+0), average=105 B"
    )


def test_statistics_of_tracemalloc_that_come_again_are_series(tmp_path: Path) -> None:
    recording = read_log(tmp_path, [_traced(n) for n in range(N)])
    found = {one.process: one.y[np.isfinite(one.y)] for one in recording.series}
    assert found["/app/feed.py:118"].tolist() == [(4.5 + n) * MIB for n in range(N)]
    assert set(found["/lib/cache.py:137"]) == {512 * 1024}


def _profiled(first: int, name: str, mib: int) -> str:
    return (
        f"Line #    Mem usage    Increment  Occurrences   Line Contents\n{'=' * 61}\n"
        f"{first:6}    {mib}.9 MiB    {mib}.9 MiB           1   @profile\n"
        f"{first + 1:6}                                         def {name}(path):\n"
        f"{first + 2:6}    {mib + 90}.5 MiB     90.6 MiB           1       rows = read(path)\n"
        f"{first + 3:6}    {mib + 20}.5 MiB    -70.0 MiB           1       del rows\n\n"
    )


def test_tables_of_memory_profiler_are_a_series_of_calls(tmp_path: Path) -> None:
    lines = [f"{_profiled(41, 'load', 300 + n)}batch {n} of 12 done" for n in range(N)]
    (series,) = read_log(tmp_path, ["Filename: etl/process.py\n", *lines]).series
    assert (series.process, series.axis.name) == ("etl/process.py:41", "operation")
    assert series.y.tolist() == pytest.approx([(300.9 + n) * MIB for n in range(N)])
    assert series.x.tolist() == list(range(N))


def test_functions_in_tables_of_memory_profiler_are_different_series(tmp_path: Path) -> None:
    lines = [_profiled(60, "once", 700)]
    for n in range(N):
        lines += [_profiled(9, "inner", 400 + 2 * n), _profiled(41, "outer", 500 + n)]
    recording = read_log(tmp_path, ["Filename: etl/process.py\n", *lines])
    found = {str(one.process): one.y[np.isfinite(one.y)] for one in recording.series}
    assert {name: len(y) for name, y in found.items()} == {
        "etl/process.py:9": N,
        "etl/process.py:41": N,
    }
    assert found["etl/process.py:9"][1] == pytest.approx(402.9 * MIB)


def test_a_few_tables_of_memory_profiler_are_refused(tmp_path: Path) -> None:
    tables = [_profiled(9 + 9 * n, "load", 300) for n in range(6)]
    with pytest.raises(ReadError, match="one moment"):
        read_log(tmp_path, ["Filename: etl/process.py\n", *tables])


@pytest.mark.parametrize(
    "total", ["[{n:6}] current={mb}.4 MB; peak={mb}.9 MB", "batch {n}: {mb}.4 MB in use"]
)
def test_totals_between_statistics_of_tracemalloc_are_the_series(
    tmp_path: Path, total: str
) -> None:
    lines = [total.format(n=100 * n, mb=30 + n) for n in range(1, 25)]
    for at in range(20, 0, -5):
        lines.insert(at, "  top: /srv/app/cache.py:41: size=47.3 MiB, count=24219, average=88 B")
    recording = read_log(tmp_path, lines)
    series = recording.series[0]
    assert series.y.tolist() == [(30 + n) * 1e6 + 4e5 for n in range(1, 25)]
    assert series.x.tolist() == [100 * n for n in range(1, 25)]
    assert any("cache.py" in note for note in recording.notes)
    assert not any("cache.py" in str(one.process) for one in recording.series)


def test_statistics_of_tracemalloc_at_one_moment_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="one moment"):
        read_log(tmp_path, [f"/app/a.py:{n}: size=4 KiB, count=1, average=4 B" for n in range(N)])


def test_gauges_of_statsd(tmp_path: Path) -> None:
    lines = [
        f"shop.jobs:{n % 5}|c\nshop.mem.rss:{409600 + n}|g\nshop.mem.rss:+512|g\n"
        f"shop.job_ms:8|ms|@0.1"
        for n in range(N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert (series.column, series.axis.kind) == ("shop.mem.rss", AxisKind.TICK)
    assert series.y[:2].tolist() == [409600, 409601]


def test_gauges_of_statsd_with_other_tags_are_other_series(tmp_path: Path) -> None:
    lines = [
        f"mem.rss:{at + n}|g|#pod:{p}" for n in range(N) for p, at in (("a", 512), ("b", 9000))
    ]
    found = {one.column: one.y for one in read_log(tmp_path, lines).series}
    assert [found[f"mem.rss pod:{p}"][0] for p in "ab"] == [512, 9000]


def _export(n: int, *, is_monotonic: bool = False) -> str:
    return (
        f"2024-11-18T08:{n:02}:00.181Z\tinfo\tResourceMetrics #0\nResource attributes:\n"
        f"     -> service.name: Str(quotes)\n     -> process.pid: Int(17)\nScopeMetrics #0\n"
        f"Metric #0\nDescriptor:\n     -> Name: process.memory.usage\n     -> Unit: MiBy\n"
        f"     -> DataType: Sum\n     -> IsMonotonic: {str(is_monotonic).lower()}\n"
        f"NumberDataPoints #0\nData point attributes:\n     -> state: Str(used)\n"
        f"StartTimestamp: 2024-11-18 07:59:58.1 +0000 UTC\n"
        f"Timestamp: 2024-11-18 08:{n:02}:00 +0000 UTC\nValue: {190 + n}\n"
        f"Metric #1\nDescriptor:\n     -> Name: progress\n     -> Unit: 1\n"
        f"NumberDataPoints #0\nTimestamp: 2024-11-18 08:{n:02}:00 +0000 UTC\nValue: 0.1"
    )


def test_what_a_collector_of_opentelemetry_prints(tmp_path: Path) -> None:
    (series,) = read_log(tmp_path, [_export(n) for n in range(N)]).series
    assert series.column == "process.memory.usage used (MiB)"
    assert series.y[:2].tolist() == [190 * MIB, 191 * MIB]
    assert np.diff(series.x).tolist() == [60] * (N - 1)


def test_counters_that_a_collector_prints_are_no_levels(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        read_log(tmp_path, [_export(n, is_monotonic=True) for n in range(N)])


def test_the_frame_buffer_in_the_xml_of_nvidia_smi_is_read(tmp_path: Path) -> None:
    def gpu(bus: str, used: int) -> str:
        return (
            f'\t<gpu id="00000000:{bus}:00.0">\n\t\t<fb_memory_usage>\n'
            f"\t\t\t<used>{used} MiB</used>\n\t\t</fb_memory_usage>\n\t\t<bar1_memory_usage>\n"
            f"\t\t\t<used>5 MiB</used>\n\t\t</bar1_memory_usage>\n\t</gpu>"
        )

    lines = [
        f'<?xml version="1.0" ?>\n<nvidia_smi_log>\n'
        f"\t<timestamp>Thu Apr  4 04:{n:02}:00 2024</timestamp>\n"
        f"{gpu('3B', 300 + n)}\n{gpu('AF', 900)}\n</nvidia_smi_log>"
        for n in range(N)
    ]
    found = {one.process: one for one in read_log(tmp_path, lines).series}
    assert len(found) == 2
    first = next(one for name, one in found.items() if "3B" in name)
    assert first.y.tolist() == [(300 + n) * MIB for n in range(N)]
    assert np.diff(first.x).tolist() == [60] * (N - 1)


def test_one_status_of_a_service_above_a_log_is_no_reading(tmp_path: Path) -> None:
    status = [
        "● relay.service - Relay",
        "     Loaded: loaded (/etc/systemd/system/relay.service; enabled)",
        "     Memory: 1.2G",
    ]
    lines = [f"step {n} rss {900 + n} MB" for n in range(N)]
    (series,) = read_log(tmp_path, [*status, "", *lines]).series
    assert (series.axis.name, len(series.y)) == ("step", N)


def test_tasklist_without_header_is_read_by_the_times_between_its_rows(tmp_path: Path) -> None:
    row = "python.exe                   14208 Console                    1    {}.412 K"
    lines = [f"10:{n:02}:00,12\n{row.format(300 + n)}" for n in range(12)]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [((300 + n) * 1000 + 412) * 1024 for n in range(12)]
    assert series.x.tolist() == [60.0 * n for n in range(12)]


def test_one_list_of_tasks_is_no_loop(tmp_path: Path) -> None:
    row = "job{}.exe                    {} Console                    1    300,412 K"
    with pytest.raises(ReadError):
        read_log(tmp_path, [row.format(n, 4000 + n) for n in range(12)])


def test_rows_of_cgtop_need_no_header(tmp_path: Path) -> None:
    lines = []
    for n in range(N):
        lines += [
            f"/                                  424   {n}.7     6.2G        -    10.2K",
            "init.scope                           1      -        -        -        -",
            f"system.slice/db@16-main.service     42   10.4   {700 + n}.5M        -        -",
            "user.slice/user-1000.slice          62    1.1   512.0K        -        -",
            "",
        ]
    found = {one.process: one.y.tolist() for one in read_log(tmp_path, lines).series}
    assert set(found) == {"/", "system.slice/db@16-main.service", "user.slice/user-1000.slice"}
    assert found["system.slice/db@16-main.service"] == [(700.5 + n) * MIB for n in range(N)]


def test_a_single_letter_of_cgtop_is_a_power_of_1024(tmp_path: Path) -> None:
    header = "Control Group                    Tasks   %CPU   Memory  Input/s Output/s"
    lines = []
    for n in range(N):
        row = f"system.slice/train.service          42   10.4     2.{n:02d}G        -        -"
        lines += [header, row]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == pytest.approx([(2 + n / 100) * 1024 * MIB for n in range(N)])


NAMED = {
    "format": ("", "train 101.2% {}MiB / 62.7GiB"),
    "header once": (
        "NAME    CPU %    MEM USAGE / LIMIT    MEM %",
        "train   0.98%    {}MiB / 1GiB     39.27%",
    ),
    "short identifier": ("", "a91c03bf   train   3.95%   {}MiB / 7.66GiB   4.85%   21.4kB / 3kB"),
    "usage alone": ("NAME    MEM USAGE / LIMIT", "train   {}MiB / 1GiB"),
}


@pytest.mark.parametrize("form", NAMED)
def test_docker_stats_need_no_identifiers(tmp_path: Path, form: str) -> None:
    header, row = NAMED[form]
    lines = ["Every minute:", "", *([header] if header else [])]
    lines += [row.format(400 + 3 * n) for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert series.process == "train"
    assert series.y.tolist() == [(400 + 3 * n) * MIB for n in range(N)]


def test_a_fraction_in_the_line_of_a_training_is_no_container(tmp_path: Path) -> None:
    row = "step {0} acc 93.1% gpu {1} MiB / 81559 MiB"
    (series,) = read_log(tmp_path, [row.format(10 * n, 400 + 3 * n) for n in range(N)]).series
    assert series.process == ""
    assert series.x.tolist() == [10.0 * n for n in range(N)]

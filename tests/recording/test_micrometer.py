"""Micrometer's gauges in the log of a service."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError

MIB = 1 << 20
N = 12
LINE = (
    "2024-04-02 09:{at:02d}:00.667  INFO 1 --- [trics-publisher] "
    "i.m.c.i.logging.LoggingMeterRegistry      : {gauge}"
)


def log(*gauges: str) -> list[str]:
    return [LINE.format(at=at, gauge=one.format(300 + at)) for at in range(N) for one in gauges]


def test_each_gauge_of_memory_is_a_series_over_time(tmp_path: Path) -> None:
    lines = log(
        "http.server.requests{{status=200,uri=/orders}} throughput=16.46/s mean=0.0175s max=0.05s",
        "jvm.memory.used{{area=heap,id=G1 Old Gen}} value={}.5 MiB",
        "jvm.threads.live{{}} value=38 threads",
        "jvm.memory.used{{area=nonheap,id=Metaspace}} value={} KiB",
        "process.cpu.usage{{}} value=0.070298",
    )
    recording = read_log(tmp_path, lines)
    heap = series_of(recording, "jvm_memory_used_area_heap_id_g1_old_gen_bytes")
    assert heap.y.tolist() == [(300.5 + at) * MIB for at in range(N)]
    assert heap.x.tolist() == [60.0 * at for at in range(N)]
    other = series_of(recording, "jvm_memory_used_area_nonheap_id_metaspace_bytes")
    assert other.y.tolist() == [(300 + at) * 1024 for at in range(N)]
    assert len(recording.series) == 2


def test_gauges_of_other_things_are_no_memory(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        read_log(tmp_path, log("disk.free{{path=/srv}} value={} GiB", "a.b{{}} value={} threads"))

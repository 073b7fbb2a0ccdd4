"""What allocators tell of themselves: memray's summaries, torch's summaries and snapshots."""

from __future__ import annotations

import os
import pickle
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError
from memdiag.recording.read import read
from memdiag.recording.trackers import safe_unpickler
from memdiag.values.measurements import AxisKind, Role

EXPORTS = Path(__file__).parents[2] / "fixtures" / "exports"
N = 30
KIB = 1024


# ---- memray ----------------------------------------------------------------------------------


def test_memray_summaries_of_several_runs_are_a_series_of_peaks() -> None:
    for name in ("memray_stats.txt", "memray_stats.json"):
        (series,) = read(str(EXPORTS / name)).series
        assert (series.metric, series.role) == ("peak_memory_bytes", Role.PEAK)
        growth = (series.y[1:] - series.y[:-1]).tolist()
        assert growth == pytest.approx([20 * 100_057] * 2, abs=2000)


@pytest.mark.parametrize("name", ["memray_stats.txt", "memray_stats.json"])
def test_memray_summary_of_one_run_says_that_it_holds_no_series(tmp_path: Path, name: str) -> None:
    text = (EXPORTS / name).read_text()
    starts = [m.start() for m in re.finditer(r'\{\s*"total_num|\n.*Total allocations:', text)]
    with pytest.raises(ReadError, match="no memory over time") as caught:
        read_log(tmp_path, text[: starts[1]])
    assert "memdiag run" in caught.value.remedy


# ---- torch.cuda.memory_summary() -------------------------------------------------------------

SUMMARY = """\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID {gpu:<17d} |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      | {now:6d} KiB | {peak:6d} KiB | 912345 MiB | 911345 MiB |
|       from large pool | {now:6d} KiB | {peak:6d} KiB | 912345 MiB | 911345 MiB |
|       from small pool |      0 B   |      0 B   |      0 B   |      0 B   |
|---------------------------------------------------------------------------|
| GPU reserved memory   |    700 MiB |    700 MiB |    700 MiB |      0 B   |
|---------------------------------------------------------------------------|
| Allocations           | {count:7d} K  |    9999 K  |  912345 K  |  911345 K  |
|===========================================================================|
"""


def _summary(i: int, gpu: int = 0) -> str:
    return SUMMARY.format(gpu=gpu, now=100_000 + i, peak=200_000 + i, count=900 + i)


@pytest.mark.parametrize(
    ("between", "axis", "x"),
    [
        ("", AxisKind.INDEX, lambda i: i),
        ("INFO step {i}0: loss 0.5\n", AxisKind.STEP, lambda i: 10 * i),
        ("[02/07 12:00:{i:02d}] saving\n", AxisKind.SECONDS, lambda i: i),
        ("=== Epoch {i}/99 ===\n | MB | 3.5 |\n", AxisKind.EPOCH, lambda i: i),
    ],
)
def test_torch_summaries_in_a_log(
    tmp_path: Path, between: str, axis: AxisKind, x: Callable[[int], int]
) -> None:
    recording = read_log(tmp_path, "".join(between.format(i=i) + _summary(i) for i in range(N)))
    allocated = series_of(recording, "allocated_memory_bytes")
    assert allocated.role is Role.DEVICE_ALLOCATED
    assert allocated.y.tolist() == [(100_000 + i) * KIB for i in range(N)]
    assert allocated.axis.kind is axis
    assert allocated.x.tolist() == [x(i) for i in range(N)]
    assert series_of(recording, "gpu_reserved_memory_bytes").y[0] == 700 * KIB**2
    assert series_of(recording, "allocations").y[0] == 900_000
    assert series_of(recording, "peak_allocated_bytes").role is Role.PEAK


def test_torch_summaries_of_two_devices_are_two_processes(tmp_path: Path) -> None:
    recording = read_log(tmp_path, "".join(_summary(i, gpu) for i in range(N) for gpu in (0, 1)))
    allocated = [s for s in recording.series if s.metric == "allocated_memory_bytes"]
    assert [(s.process, len(s.y)) for s in allocated] == [("gpu 0", N), ("gpu 1", N)]
    assert allocated[1].x.tolist() == list(range(N))


# ---- torch.cuda.memory._snapshot() -----------------------------------------------------------

FRAMES = [{"filename": "/train.py", "line": 7, "name": "step"}]


def _snapshot(steps: int, *, forgotten: int = 0, timed: bool = True) -> dict[str, Any]:
    """Each step allocates 4 KiB, frees them, and keeps 1 KiB for ever; 2 MiB are reserved once."""
    events: list[dict[str, Any]] = [{"action": "segment_alloc", "addr": 1 << 40, "size": 2 << 20}]
    for i in range(steps):
        addr = (1 << 47) + 8192 * i
        events += [
            {"action": "alloc", "addr": addr, "size": 4 * KIB, "frames": FRAMES},
            {"action": "free_requested", "addr": addr, "size": 4 * KIB, "frames": FRAMES},
            {"action": "free_completed", "addr": addr, "size": 4 * KIB, "frames": FRAMES},
            {"action": "alloc", "addr": addr, "size": KIB, "frames": FRAMES},
        ]
    for at, event in enumerate(events if timed else ()):
        event["time_us"] = 1_700_000_000_000_000 + 1000 * at
    segment = {
        "device": 0,
        "address": 1 << 40,
        "total_size": 2 << 20,
        "allocated_size": steps * KIB,
        "segment_pool_id": (0, 0),
        "blocks": [{"size": KIB, "state": "active_allocated"}],
    }
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "garbage_collection_threshold": 0.5, "big": None}
    traces = [events[forgotten:], []]
    return {"segments": [segment], "device_traces": traces, "allocator_settings": settings}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_snapshot_gives_the_levels_between_its_events(tmp_path: Path, protocol: int) -> None:
    recording = read_log(tmp_path, pickle.dumps(_snapshot(N), protocol=protocol))
    allocated = series_of(recording, "allocated_bytes")
    assert (allocated.role, allocated.axis.kind) == (Role.DEVICE_ALLOCATED, AxisKind.SECONDS)
    assert allocated.y[:7].tolist() == [0, 4096, 0, 1024, 5120, 1024, 2048]
    assert allocated.y[-1] == N * KIB
    assert allocated.x[1] == pytest.approx(1e-3)
    reserved = series_of(recording, "reserved_bytes")
    assert set(reserved.y.tolist()) == {2 << 20}


def test_snapshot_that_forgot_its_beginning_has_the_same_levels(tmp_path: Path) -> None:
    whole = read_log(tmp_path, pickle.dumps(_snapshot(N)))
    rest = read_log(tmp_path, pickle.dumps(_snapshot(N, forgotten=9)))
    kept = series_of(rest, "allocated_bytes").y
    assert kept.tolist() == series_of(whole, "allocated_bytes").y[-len(kept) :].tolist()


def test_snapshot_without_times_counts_its_events(tmp_path: Path) -> None:
    recording = read_log(tmp_path, pickle.dumps(_snapshot(N, timed=False)))
    assert series_of(recording, "allocated_bytes").axis.kind is AxisKind.INDEX


class _Runs:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.mkdir, ("ran",)


class _Named:
    pass


BOMB = [0] * 1000
for _ in range(2):
    BOMB = [BOMB] * 1000


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(pickle.dumps({"device_traces": [[_Runs()]]}), "plain values", id="code"),
        pytest.param(pickle.dumps({"x": os.getcwd}, protocol=2), "plain values", id="function"),
        pytest.param(pickle.dumps([_Named]), "plain values", id="class"),
        pytest.param(b"\x80\x02cos\nsystem\n.", "plain values", id="global"),
        pytest.param(b"\x80\x04X\x01\0\0\0aQ.", "plain values", id="persistent"),
        pytest.param(b"\x80\x04\x82\x01.", "plain values", id="extension"),
        pytest.param(b"\x80\x04Nr\xff\xff\xff\xff.", "plain values", id="huge memo"),
        pytest.param(b"\x80\x05\x96" + b"\xff" * 7 + b"\x0f.", "plain values", id="huge bytes"),
        pytest.param(b"\x80\x04\x8b\xff\xff\xff\x0f" + b"9" * 99, "plain values", id="huge number"),
        pytest.param(pickle.dumps(_snapshot(N))[:-40], "cut off|damaged|plain", id="cut off"),
        pytest.param(b"\x80\x04.", "damaged", id="nothing"),
        pytest.param(b"\x80\x04e.", "damaged", id="appends to nothing"),
        pytest.param(b"\x80\x04]]\x86]s.", "damaged", id="fills a tuple"),
        pytest.param(b"\x80\x04}]]s.", "damaged", id="list as a key"),
        pytest.param(b"\x80\x04h\x07.", "damaged", id="empty place of the memo"),
        pytest.param(pickle.dumps([1, 2, 3]), "not a snapshot", id="list"),
        pytest.param(pickle.dumps({"device_traces": [[], []]}), "no history", id="no history"),
        pytest.param(pickle.dumps({"device_traces": [5, [5, []]]}), "no history", id="numbers"),
        pytest.param(pickle.dumps({"device_traces": BOMB}), "no history|events", id="bomb"),
        pytest.param(
            pickle.dumps({"device_traces": [[{"action": [], "size": 1e400}]]}),
            "no history",
            id="inf",
        ),
    ],
)
def test_other_pickles_are_refused_and_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.monotonic()
    with pytest.raises(ReadError, match=says):
        read_log(tmp_path, content)
    assert time.monotonic() - began < 20
    assert not (tmp_path / "ran").exists()


def test_plain_values_come_back_as_they_were() -> None:
    value = {
        "text": ["", "é" * 70_000, "x" * 300],
        "numbers": [0, -1, 255, 65_536, 1 << 47, -(1 << 62), 0.5, 1e300],
        "rest": (None, True, False, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), b"bytes", {}),
        "many": [{"a": n, "b": str(n)} for n in range(5000)],
    }
    for protocol in (2, 3, 4, 5):
        if protocol == 2:
            value["rest"] = (None,)  # bytes are a call in it
        else:
            value["rest"] = (b"bytes", {})
        assert safe_unpickler.load(pickle.dumps(value, protocol=protocol)) == value


@pytest.mark.parametrize("name", ["total_alloc_mb", "total_allocated_mb", "TotalAllocMB"])
def test_a_sum_of_all_allocations_is_no_memory_in_use(tmp_path: Path, name: str) -> None:
    rows = [f"{n},{500 * n},{800 + n % 3}" for n in range(40)]
    recording = read_log(tmp_path, [f"step,{name},heap_inuse_mb", *rows])
    assert {series.column for series in recording.series} == {"heap_inuse_mb"}
    assert f"not read as memory in use: {name}" in recording.notes


@pytest.mark.parametrize(("first", "each", "turns"), [(800, 5, 40), (9000, 50, 7)])
def test_a_total_that_falls_or_stays_near_what_is_in_use_is_memory(
    tmp_path: Path, first: int, each: int, turns: int
) -> None:
    rows = [f"{n},{first + each * (n % turns)},{800 + n % 3}" for n in range(40)]
    recording = read_log(tmp_path, ["step,total_allocated_mb,heap_inuse_mb", *rows])
    assert len(recording.series) == 2

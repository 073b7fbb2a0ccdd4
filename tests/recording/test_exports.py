"""Exports of experiment trackers and monitors: TensorBoard, W&B, MLflow, Prometheus, JSON."""

from __future__ import annotations

import gzip
import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError
from memdiag.recording.read import expand, read
from memdiag.recording.read_options import MetricChoice
from memdiag.recording.trackers.crc32c import crc32c, masked_crc32c
from memdiag.values.measurements import AxisKind, Role, Unit

EXPORTS = Path(__file__).parents[2] / "fixtures" / "exports"
N = 30
STARTED = 1700000000


# ---- TensorBoard -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("writer", "metric", "scale"),
    [("tensorboardx", "memory_allocated_bytes", 1e6), ("tensorboard", "system_vram_bytes", 1e6)],
)
def test_event_files_of_real_writers(writer: str, metric: str, scale: float) -> None:
    recording = read(str(EXPORTS / f"events.out.tfevents.1700000000.{writer}"))
    (series,) = recording.series
    assert series.metric == metric
    assert series.axis.kind is AxisKind.STEP
    known = np.isfinite(series.y)
    assert series.x[known].tolist() == [10 * i for i in range(60)]
    expected = [(1000 + 2000 * (1 - math.exp(-i / 5))) * scale for i in range(60)]
    np.testing.assert_allclose(series.y[known], expected, rtol=1e-6)
    assert series.at_s is not None
    assert series.at_s[-1] == pytest.approx(59, abs=0.2)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _record(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", masked_crc32c(length)) + event + b"\0\0\0\0"


def _event(step: int, tag: str, value: bytes) -> bytes:
    summary = _field(1, _field(1, tag.encode()) + value)
    return (
        b"\x09" + struct.pack("<d", STARTED + step) + b"\x10" + _varint(step) + _field(5, summary)
    )


def _simple(value: float) -> bytes:
    return b"\x15" + struct.pack("<f", value)


def _events(scalars: list[tuple[int, str, bytes]]) -> bytes:
    first = b"\x09" + struct.pack("<d", STARTED) + _field(3, b"brain.Event:2")
    return b"".join(_record(e) for e in [first, *(_event(*scalar) for scalar in scalars)])


def test_checksum_is_the_one_of_rfc_3720() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


def test_tensors_of_every_type_are_scalars(tmp_path: Path) -> None:
    def tensor(content: bytes) -> bytes:
        return _field(8, content)

    kinds: list[Callable[[int], bytes]] = [
        lambda i: tensor(b"\x08\x01" + _field(5, struct.pack("<f", i))),
        lambda i: tensor(b"\x08\x02" + _field(6, struct.pack("<d", i))),
        lambda i: tensor(b"\x08\x03\x38" + _varint(i)),
        lambda i: tensor(b"\x08\x09\x50" + _varint(i)),
        lambda i: tensor(b"\x08\x09" + _field(4, struct.pack("<q", i))),
    ]
    for kind in kinds:
        content = _events([(i, "rss_mb", kind(i)) for i in range(N)])
        series = series_of(read_log(tmp_path, content), "rss_bytes")
        assert series.y.tolist() == [i * 1e6 for i in range(N)]


def test_of_many_tags_only_memory_is_judged_and_any_can_be_asked_for(tmp_path: Path) -> None:
    tags = ["train/loss", "lr", "gpu_mem (GB)", "epoch"]
    content = _events([(i, tag, _simple(i)) for i in range(N) for tag in tags])
    assert [s.metric for s in read_log(tmp_path, content).series] == ["gpu_mem_bytes"]
    asked = read_log(tmp_path, content, metrics=(MetricChoice(name="lr"),))
    assert [s.column for s in asked.series] == ["lr"]


def test_event_file_without_memory_names_its_tags(tmp_path: Path) -> None:
    content = _events([(i, "train/loss", _simple(i)) for i in range(N)])
    with pytest.raises(ReadError, match="train/loss") as caught:
        read_log(tmp_path, content)
    assert "--metric" in caught.value.remedy


def test_torn_or_damaged_event_file_is_read_up_to_there(tmp_path: Path) -> None:
    content = _events([(i, "rss_mb", _simple(i)) for i in range(N)])
    torn = read_log(tmp_path, content[:-7])
    assert len(series_of(torn, "rss_bytes").y) == N - 1
    assert any("torn off" in note for note in torn.notes)
    half = len(content) // 2
    damaged = read_log(tmp_path, content[:half] + b"\xff" * 40 + content[half + 40 :])
    assert 5 < len(series_of(damaged, "rss_bytes").y) < N
    assert any("damaged" in note for note in damaged.notes)


def test_event_of_impossible_length_ends_the_file(tmp_path: Path) -> None:
    content = _events([(i, "rss_mb", _simple(i)) for i in range(N)])
    for length in (2**64 - 1, 2**63 - 4, 2**31 + 1):
        packed = struct.pack("<Q", length)
        header = packed + struct.pack("<I", masked_crc32c(packed))
        recording = read_log(tmp_path, content + header + content)
        assert len(series_of(recording, "rss_bytes").y) == N
        assert any("damaged" in note for note in recording.notes)


def test_large_events_are_passed_over_without_being_read(tmp_path: Path) -> None:
    scalars = [(i, "rss_mb", _simple(i)) for i in range(N)]
    picture = _record(_event(5, "picture", _field(4, bytes(3 << 20))))
    content = _events(scalars[:10]) + picture + b"".join(_record(_event(*s)) for s in scalars[10:])
    for packed in (content, gzip.compress(content)):
        assert len(series_of(read_log(tmp_path, packed), "rss_bytes").y) == N


def test_log_directory_is_searched_for_event_files(tmp_path: Path) -> None:
    content = _events([(i, "rss_mb", _simple(i)) for i in range(N)])
    for version in ("version_0", "version_1"):
        folder = tmp_path / "lightning_logs" / version
        folder.mkdir(parents=True)
        (folder / "events.out.tfevents.17.host.1.0").write_bytes(content)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "events.out.tfevents.17.host.1.0").write_bytes(content)
    found = expand([str(tmp_path)])
    assert [Path(source).parent.name for source in found] == ["version_0", "version_1"]
    assert all(read(source).series for source in found)


# ---- Weights & Biases ------------------------------------------------------------------------

HISTORY: list[dict[str, Any]] = [
    {
        "_step": 5 * i,
        "_runtime": 1.5 * i,
        "_timestamp": STARTED + 1.5 * i,
        "loss": 0.5,
        "system.gpu.0.memory": 40 + i % 7,
        "system.gpu.0.memoryAllocated": 10 + i,
        "system.gpu.0.memoryAllocatedBytes": 10**9 + i,
        "system.memory": 55.5,
        "system.proc.memory.rssMB": 5000 + i,
        "system.proc.memory.availableMB": 9000 - i,
    }
    for i in range(N)
]


def _as_csv(rows: list[dict[str, Any]]) -> str:
    lines = [rows[0].keys(), *(map(str, row.values()) for row in rows)]
    return "\n".join(",".join(line) for line in lines) + "\n"


@pytest.mark.parametrize(
    "text",
    [_as_csv(HISTORY), json.dumps(HISTORY), "\n".join(map(json.dumps, HISTORY))],
    ids=["csv", "json", "jsonl"],
)
def test_wandb_history(tmp_path: Path, text: str) -> None:
    recording = read_log(tmp_path, text)
    rss = series_of(recording, "proc_memory_rss_bytes")
    assert (rss.role, rss.axis.name) == (Role.RESIDENT, "_step")
    assert rss.x.tolist() == [5 * i for i in range(N)]
    assert rss.y.tolist() == [(5000 + i) * 1e6 for i in range(N)]
    assert rss.at_s is not None
    assert rss.at_s[-1] == pytest.approx(1.5 * (N - 1))
    assert series_of(recording, "proc_memory_available_bytes").falling
    assert series_of(recording, "gpu_0_memory_allocated_bytes").y[0] == 10**9
    shares = {s.metric: s for s in recording.series if s.unit is Unit.PERCENT}
    assert set(shares) == {"gpu_0_memory_allocated_percent", "host_memory_percent"}
    assert shares["host_memory_percent"].role is Role.HOST


def test_wandb_chart_of_two_runs_is_two_processes(tmp_path: Path) -> None:
    metric = "system/gpu.0.memoryAllocatedBytes"
    header = ["Step"] + [f"{run} - {metric}{m}" for run in "AB" for m in ("", "__MIN", "__MAX")]
    rows = [[i, 10**9 + i, 5, 6, 2 * 10**9, 7, 8] for i in range(N)]
    text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in [header, *rows])
    recording = read_log(tmp_path, text)
    assert [(s.metric, s.process) for s in recording.series] == [
        ("gpu_0_memory_allocated_bytes", "A"),
        ("gpu_0_memory_allocated_bytes", "B"),
    ]
    assert recording.series[0].y.tolist() == [10**9 + i for i in range(N)]


# ---- MLflow ----------------------------------------------------------------------------------


def _metric(first: float, slope: float, more: str = "") -> str:
    return "".join(f"{(STARTED + 10 * i) * 1000} {first + slope * i} {i}{more}\n" for i in range(N))


def _mlruns(root: Path) -> Path:
    metrics = root / "mlruns" / "0" / "abc" / "metrics"
    (metrics / "system").mkdir(parents=True)
    (metrics / "system" / "gpu_0_memory_usage_megabytes").write_text(_metric(8000, 1))
    (metrics / "system" / "disk_usage_megabytes").write_text(_metric(70000, 1))
    (metrics / "loss").write_text(_metric(1, -0.01))
    (metrics / "rss_mb").write_text(_metric(5000, 2))
    (metrics.parent / "meta.yaml").write_text("run_id: abc\n")
    return metrics


@pytest.mark.parametrize("depth", range(4))
def test_mlflow_run_is_one_recording_of_all_its_metrics(tmp_path: Path, depth: int) -> None:
    metrics = _mlruns(tmp_path)
    place = [metrics, *metrics.parents][depth]
    (found,) = expand([str(place)])
    recording = read(found)
    assert {s.metric for s in recording.series} == {
        "rss_bytes",
        "system_gpu_0_memory_usage_bytes",
    }
    rss = series_of(recording, "rss_bytes")
    assert rss.y.tolist() == [(5000 + 2 * i) * 1e6 for i in range(N)]
    assert (rss.axis.name, rss.x.tolist()) == ("step", list(range(N)))
    assert rss.at_s is not None
    assert rss.at_s.tolist() == [10 * i for i in range(N)]


def test_mlflow_metric_file_is_named_by_its_path(tmp_path: Path) -> None:
    metrics = _mlruns(tmp_path)
    (series,) = read(str(metrics / "system" / "gpu_0_memory_usage_megabytes")).series
    assert (series.metric, series.role) == ("system_gpu_0_memory_usage_bytes", Role.DEVICE)
    newer = read_log(tmp_path, _metric(1, 1, " data 4f5a m-1"), "rss_mb")
    assert newer.series[0].y[-1] == N * 1e6
    with pytest.raises(ReadError, match="looks like memory"):
        read(str(metrics / "loss"))


# ---- Prometheus ------------------------------------------------------------------------------


def _range(*series: tuple[dict[str, str], Callable[[int], object]]) -> dict[str, Any]:
    result = [
        {"metric": labels, "values": [[STARTED + 15 * i, str(value(i))] for i in range(N)]}
        for labels, value in series
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def test_prometheus_series_are_told_apart_by_the_labels_that_differ(tmp_path: Path) -> None:
    name = "process_resident_memory_bytes"
    answer = _range(
        ({"__name__": name, "instance": "a:9", "job": "train"}, lambda i: 10**9 + i),
        ({"__name__": name, "instance": "b:9", "job": "train"}, lambda i: "NaN" if i == 3 else 7),
    )
    documents = [answer, answer["data"], answer["data"]["result"]]
    for document in documents:
        recording = read_log(tmp_path, json.dumps(document, indent=1))
        first = series_of(recording, name, "a:9")
        assert first.y.tolist() == [10**9 + i for i in range(N)]
        assert (first.axis.kind, first.x.tolist()) == (
            AxisKind.SECONDS,
            [15 * i for i in range(N)],
        )
        assert np.isnan(series_of(recording, name, "b:9").y[3])


def test_prometheus_exporters_that_leave_the_unit_out(tmp_path: Path) -> None:
    answer = _range(
        ({"__name__": "DCGM_FI_DEV_FB_USED"}, lambda i: 500 + i),
        ({"__name__": "container_memory_rss"}, lambda i: 1001 + i),
        ({"__name__": "go_memstats_alloc_bytes_total"}, lambda i: i),
    )
    recording = read_log(tmp_path, json.dumps(answer))
    found = {s.metric: np.nanmax(s.y) for s in recording.series}
    assert found == {
        "dcgm_fi_dev_fb_used_bytes": (500 + N - 1) * 2**20,
        "container_memory_rss_bytes": 1000 + N,
    }
    assert any("counters" in note for note in recording.notes)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (_range(({}, lambda i: i)), "looks like memory"),
        (_range(), "no series"),
        ({"status": "error", "errorType": "bad_data", "error": "bad \x1b[31m"}, "query failed"),
        (
            {"data": {"result": [{"metric": {"__name__": "rss_bytes"}, "value": [1, "2"]}]}},
            "instant",
        ),
        (_range(({"__name__": "errors_total"}, lambda i: i)), "counters"),
    ],
)
def test_prometheus_answers_without_memory_over_time_say_so(
    tmp_path: Path, document: dict[str, Any], says: str
) -> None:
    with pytest.raises(ReadError, match=says) as caught:
        read_log(tmp_path, json.dumps(document))
    assert "\x1b" not in caught.value.message


# ---- JSON documents --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        [{"step": i, "memory": {"rss_mb": 100 + i}} for i in range(N)],
        {"best": 1, "log_history": [{"step": i, "memory.rss_mb": 100 + i} for i in range(N)]},
        {"step": list(range(N)), "memory_rss_mb": [100 + i for i in range(N)]},
        {
            "step": {str(i): i for i in range(N)},
            "memory_rss_mb": {str(i): 100 + i for i in range(N)},
        },
    ],
    ids=["rows", "trainer state", "columns", "pandas"],
)
def test_json_documents_are_tables(tmp_path: Path, document: object) -> None:
    for indent in (None, 2):
        recording = read_log(tmp_path, json.dumps(document, indent=indent))
        series = series_of(recording, "memory_rss_bytes")
        assert series.x.tolist() == list(range(N))
        assert series.y.tolist() == [(100 + i) * 1e6 for i in range(N)]


def test_victoriametrics_exports_times_beside_values(tmp_path: Path) -> None:
    def line(pod: str, first: int) -> str:
        metric = {"__name__": "process_resident_memory_bytes", "instance": pod}
        at_ms = [1709626351000 + 60000 * n for n in range(9)]
        values = [first + n for n in range(9)]
        return json.dumps({"metric": metric, "values": values, "timestamps": at_ms})

    series = read_log(tmp_path, [line("a", 5), line("b", 70)]).series
    assert {one.process: one.y[0] for one in series} == {"a": 5.0, "b": 70.0}
    assert series[0].x.tolist() == [60.0 * n for n in range(9)]


def test_a_notebook_is_read_as_what_its_cells_printed(tmp_path: Path) -> None:
    printed = [f"Epoch {n}/12 - loss: 0.5 - ram: {n}.25 GB\n" for n in range(12)]
    shown = {"output_type": "execute_result", "data": {"text/plain": ["0.93"]}}
    cells = [
        {"cell_type": "markdown", "source": ["# rss 7 MB"]},
        {"cell_type": "code", "source": ["x"], "outputs": [{"name": "stdout", "text": printed}]},
        {"cell_type": "code", "source": ["evaluate()"], "outputs": [shown]},
    ]
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (series,) = read_log(tmp_path, json.dumps(document, indent=1)).series
    assert series.axis.kind is AxisKind.EPOCH
    assert series.y.tolist() == [n * 1e9 + 0.25e9 for n in range(12)]


def test_a_state_is_named_by_its_entity(tmp_path: Path) -> None:
    rows = [f"sensor.nas_memory_use,{n}.5,2024-03-05T10:{n:02}:00Z" for n in range(12)]
    rows.insert(3, "sensor.nas_memory_use,unavailable,2024-03-05T10:02:30Z")
    (series,) = read_log(tmp_path, ["entity_id,state,last_changed", *rows]).series
    assert series.axis.kind is AxisKind.SECONDS
    assert series.y[np.isfinite(series.y)].tolist() == [n + 0.5 for n in range(12)]


def test_a_query_names_the_values_of_an_export(tmp_path: Path) -> None:
    """Datadog's, with the tags of the query."""
    query = "avg:kubernetes.memory.usage{service:billing}"
    rows = [
        f'"2024-08-19T{n // 3:02d}:{20 * (n % 3):02d}:00.000Z","{query}",{745e6 + n}'
        for n in range(40)
    ]
    (series,) = read_log(tmp_path, ['"time","query","value"', *rows], "export.csv").series
    assert (series.column, series.x[1], series.y[1]) == (query, 1200, 745e6 + 1)

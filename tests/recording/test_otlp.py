"""OpenTelemetry's metrics as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from logs import read_log

from memdiag.errors import ReadError

N = 30
STARTED = 1700000000


def _printed(i: int, pid: int) -> dict[str, Any]:
    """What the console exporter of Python prints."""
    own = {"time_unix_nano": (STARTED + 15 * i) * 10**9}
    metrics = [
        {
            "name": "process.memory.usage",
            "unit": "MiBy",
            "data": {"data_points": [{"attributes": {}, **own, "value": 100 + i}]},
        },
        {
            "name": "allocated.memory",
            "unit": "By",
            "data": {"data_points": [{**own, "value": i}], "is_monotonic": True},
        },
        {"name": "latency", "unit": "s", "data": {"data_points": [{**own, "count": 3, "sum": 2}]}},
    ]
    resource = {"attributes": {"service.name": "quotes", "process.pid": pid}}
    return {"resource_metrics": [{"resource": resource, "scope_metrics": [{"metrics": metrics}]}]}


@pytest.mark.parametrize("indent", [4, None], ids=["pretty", "lines"])
def test_opentelemetry_of_python(tmp_path: Path, indent: int | None) -> None:
    exports = [_printed(i, pid=7 if i < N // 2 else 9) for i in range(N)]
    text = "\n".join(json.dumps(export, indent=indent) for export in exports)
    recording = read_log(tmp_path, text)
    (series,) = recording.series
    assert series.y.tolist() == [(100 + i) * 2**20 for i in range(N)]
    assert series.x.tolist() == [15 * i for i in range(N)]
    assert series.generation is not None
    assert series.generation.max() == 1
    assert "counters left out: 1" in recording.notes


def test_opentelemetry_programs_at_once_are_processes(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(_printed(i, pid=7 + i % 2)) for i in range(N))
    recording = read_log(tmp_path, text + '\n{"resource_metrics": [')
    assert [series.process for series in recording.series] == ["pid 7", "pid 8"]
    assert "lines that are not JSON left out: 1" in recording.notes


def test_opentelemetry_of_odd_types_is_no_crash(tmp_path: Path) -> None:
    points = [{"asInt": [1], "timeUnixNano": {}}, {"asDouble": "NaN", "timeUnixNano": "1e999"}, 4]
    points += [{"asInt": 10**400, "attributes": [{"key": 5, "value": {"stringValue": {}}}]}]
    metrics = [
        {"name": {}, "unit": [], "sum": []},
        {"name": "rss", "gauge": {"dataPoints": points}},
    ]
    odd = [5, [[], 3, {"resource": 7, "scopeMetrics": [{"metrics": metrics}]}]]
    text = "\n".join(json.dumps({"resourceMetrics": one}) for one in odd)
    with pytest.raises(ReadError):
        read_log(tmp_path, text)


def test_opentelemetry_of_counters_alone_says_so(tmp_path: Path) -> None:
    exports = (json.dumps(_printed(i, pid=7)) for i in range(N))
    text = "\n".join(one.replace('"attributes": {}', '"x": 0') for one in exports)
    text = text.replace('"process.memory.usage", "unit": "MiBy", "data"', '"a", "unit": "", "z"')
    with pytest.raises(ReadError, match="its 1 metrics are counters"):
        read_log(tmp_path, text)

"""Lists of devices, containers or pods in a line of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memdiag.recording.read import read
from memdiag.values.measurements import Recording

ROWS = 20


def recording(path: Path, rows: list[dict[str, Any]]) -> Recording:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return read(str(path))


def firsts(found: Recording) -> dict[tuple[str, str], float]:
    return {(one.process, one.column): float(one.y[0]) for one in found.series}


def test_names_tell_parts_apart_whatever_their_order(tmp_path: Path) -> None:
    parts = [{"name": "web", "rss_mb": 300}, {"name": "db", "rss_mb": 900}]
    rows = [{"step": step, "parts": parts[:: 1 - 2 * (step % 2)]} for step in range(ROWS)]
    found = recording(tmp_path / "log.jsonl", rows)
    assert {one.process: set(one.y.tolist()) for one in found.series} == {
        "web": {300e6},
        "db": {900e6},
    }


def test_parts_without_names_of_their_own_are_numbered(tmp_path: Path) -> None:
    rows = [
        {"step": step, "gpus": [{"name": "A100", "used_mb": size} for size in (100 + step, 500)]}
        for step in range(ROWS)
    ]
    found = firsts(recording(tmp_path / "log.jsonl", rows))
    assert {process: first for (process, _), first in found.items()} == {
        "gpu 0": 100e6,
        "gpu 1": 500e6,
    }


def test_pods_in_a_list_have_their_own_names(tmp_path: Path) -> None:
    pods = [
        {"metadata": {"name": pod}, "containers": [{"name": "app", "usage": {"memory": size}}]}
        for pod, size in (("web-1", "1024Ki"), ("web-2", "2Mi"))
    ]
    start = "2026-01-05T10:00:"
    rows = [{"timestamp": f"{start}{row:02d}Z", "items": pods} for row in range(ROWS)]
    found = firsts(recording(tmp_path / "log.jsonl", rows))
    assert {process: first for (process, _), first in found.items()} == {
        "web-1": 2**20,
        "web-2": 2**21,
    }


def test_parts_beside_memory_of_the_whole_are_columns(tmp_path: Path) -> None:
    rows = [
        {"step": step, "rss_mb": 900, "gpus": [{"used_mb": 100}, {"used_mb": 500}]}
        for step in range(ROWS)
    ]
    found = firsts(recording(tmp_path / "log.jsonl", rows))
    assert found == {
        ("", "rss_mb"): 900e6,
        ("", "gpus.0.used_mb"): 100e6,
        ("", "gpus.1.used_mb"): 500e6,
    }

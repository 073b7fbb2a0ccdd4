"""Censuses and interventions from the probe; files that no probe writes count as absent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memdiag.capture.probelink.census_file import read_answer, read_censuses, request_census
from memdiag.capture.probelink.channel import create, remove
from memdiag.capture.probelink.intervention_file import read_interventions
from memdiag.probe.process_identity import ProcessIdentity
from memdiag.probe.ring_writer import Ring
from memdiag.values.holders import Name, TensorGroup, TypeCount


def census() -> dict[str, Any]:
    return {
        "why": "request",
        "at_s": 100.0,
        "step": 7,
        "took_s": 0.1,
        "tensors": [2, 800],
        "groups": [
            {
                "path": [["local", "outs", "main", "/train.py", 3], ["item", "", "", "", 0]],
                "type": "Tensor",
                "shape": [10, 10],
                "dtype": "float32",
                "device": "cuda:0",
                "count": 2,
                "bytes": 800,
                "graph": True,
                "inside": "",
            }
        ],
        "types": [["list", 5, 400]],
        "allocators": {"vram": {"allocated_bytes": 800, "unheard": 3}, "unheard": {}},
        "notes": ["a note"],
    }


def document(*taken: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "answer": "abc", "censuses": list(taken) or [census()]}


def intervention() -> dict[str, Any]:
    return {
        "action": "gc_collect",
        "at_s": 99.0,
        "step": 5,
        "took_s": 0.2,
        "before": {"rss_bytes": 10, "unheard": 4},
        "after": {"rss_bytes": 8},
    }


def interventions() -> dict[str, Any]:
    return {"version": 1, "began_s": 95.0, "done": [intervention()]}


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Any]:
    def read(data: Any, reader: Any = read_censuses, **about: Any) -> Any:
        suffix = "interventions" if reader is read_interventions else "census"
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        (tmp_path / f"1-2.{suffix}").write_bytes(raw)
        fd = os.open(tmp_path, os.O_RDONLY)
        try:
            return reader("1-2.ring", dir_fd=fd, owners=(os.geteuid(),), **about)
        finally:
            os.close(fd)

    return read


ABOUT = {"pid": 1, "began_at_s": 90.0}


def test_what_the_probe_writes_is_read(read: Any) -> None:
    (found,) = read(document(), **ABOUT).censuses
    assert (found.at_s, found.step, found.tensors, found.tensor_bytes) == (10.0, 7, 2, 800)
    assert found.groups == (
        TensorGroup(
            path=(
                Name(kind="local", name="outs", owner="main", file="/train.py", line=3),
                Name(kind="item", name=""),
            ),
            type="Tensor",
            shape=(10, 10),
            dtype="float32",
            device="cuda:0",
            count=2,
            size_bytes=800,
            has_graph=True,
        ),
    )
    assert found.types == (TypeCount(type="list", count=5, size_bytes=400),)
    assert found.allocators == {"vram_allocated_bytes": 800}
    assert read(document(), read_answer) == "abc"
    found = read(interventions(), read_interventions, **ABOUT)
    assert (found.began_s, found.done[0].at_s, found.done[0].before) == (
        5.0,
        9.0,
        {"rss_bytes": 10},
    )


@pytest.mark.parametrize(
    "change",
    [
        {"why": "because"},
        {"at_s": "soon"},
        {"at_s": float("inf")},
        {"tensors": [1]},
        {"tensors": [-1, 2]},
        {"tensors": [1 << 70, 2]},
        {"types": [["list", 1.5, 2]]},
        {"types": [[3, 1, 2]]},
        {"groups": [{}]},
        {"groups": [{**census()["groups"][0], "path": [["unheard", "", "", "", 0]]}]},
        {"groups": [{**census()["groups"][0], "shape": [True]}]},
        {"allocators": []},
        {"notes": [{}]},
        {"step": None},
    ],
)
def test_what_no_probe_writes_counts_as_absent(read: Any, change: dict[str, Any]) -> None:
    assert read(document({**census(), **change}), **ABOUT) is None


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"[" * 100_000, b'{"version": 2}', b"\xff"])
def test_damaged_files_count_as_absent(read: Any, data: bytes) -> None:
    assert read(data, **ABOUT) is None
    assert read(data, read_answer) == ""
    assert read(data, read_interventions, **ABOUT) is None


@pytest.mark.parametrize(
    "change", [{"action": "format"}, {"before": [1]}, {"after": {"rss_bytes": -1}}]
)
def test_damaged_interventions_count_as_absent(read: Any, change: dict[str, Any]) -> None:
    damaged = {**interventions(), "done": [{**intervention(), **change}]}
    assert read(damaged, read_interventions, **ABOUT) is None


def test_lists_and_texts_are_limited(read: Any) -> None:
    types = [["x" * 1000, 1, 1]] * 10
    many = {**census(), "groups": census()["groups"] * 100, "types": types}
    found = read(document(*[many] * 20), **ABOUT)
    assert len(found.censuses) == 16
    assert len(found.censuses[0].groups) == 64
    assert max(len(one.type) for one in found.censuses[0].types) == 200


def test_file_of_another_user_counts_as_absent(tmp_path: Path) -> None:
    (tmp_path / "1-2.census").write_text(json.dumps(document()))
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        others = (os.geteuid() + 1,)
        assert read_censuses("1-2.ring", dir_fd=fd, owners=others, **ABOUT) is None
    finally:
        os.close(fd)


def test_request_is_taken_once_and_removed_with_the_channel(tmp_path: Path) -> None:
    directory = create(tmp_path / "base")
    ring = Ring(str(directory), ProcessIdentity())
    fd = os.open(directory, os.O_RDONLY)
    try:
        name = Path(ring.path).name
        request_census(name, "request", dir_fd=fd)
        token = request_census(name, "critical", dir_fd=fd)  # replaces the first
    finally:
        os.close(fd)
    assert ring.take_request() == f"critical {token}"
    assert ring.take_request() == ""
    ring.write_beside(b"{}", ".census")
    remove(directory)
    assert not directory.exists()


def test_request_that_is_no_file_is_ignored(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path), ProcessIdentity())
    request = Path(ring.path.replace(".ring", ".request"))
    os.mkfifo(request)
    assert ring.take_request() == ""
    request.unlink()
    request.mkdir()
    assert ring.take_request() == ""
    request.rmdir()
    request.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("critical 1")
    assert ring.take_request() == ""

"""What the probe wrote about growing places; files that no probe writes count as absent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memdiag.capture.probelink.channel import ChannelReader, create, remove
from memdiag.capture.probelink.holder_file import read_holders
from memdiag.probe import ring_format
from memdiag.probe.process_identity import ProcessIdentity
from memdiag.probe.ring_writer import Ring
from memdiag.values.holders import Size


def document() -> dict[str, Any]:
    return {
        "version": 1,
        "walks": [[1, -(1 << 63), 100.0, 1, 1], [2, 40, 101.0, 1, 1], [3, 90, 103.0, 1, 1]],
        "model_bytes": 4096,
        "batch_bytes": 8192,
        "activations": [[5120, ["Linear", "ReLU"]]],
        "unread": [["main", "locals"]],
        "files": ["/train.py"],
        "window": {
            "steps": 5,
            "lasted_s": 1.5,
            "all_threads": False,
            "native": [["/train.py", 8, "main", 4096.0]],
        },
        "allocated": [["device", "/train.py", 9, "main", 2048.0]],
        "places": [
            {
                "path": [["local", "losses", "main", "/train.py", 3]],
                "aliases": ["sink"],
                "unit": "items",
                "sizes": [[1, 0.0], [2, 40.0]],
                "last_walk": 3,
                "watched": [["/train.py", 7, "main.<locals>.keep.<lambda>", 4]],
                "readings": [[45, 101.5, 44.0], [95, 103.5, 40.0]],
                "is_chain": False,
                "bytes": 512.5,
                "device_bytes": 0,
                "small_bytes": 32.0,
                "hiding": 0.0,
                "is_estimated": False,
                "hiding_type": "",
                "type": "Tensor",
                "kind": "graph",
                "through": "",
                "bound": None,
                "container": "list",
            }
        ],
    }


def read(tmp_path: Path, data: bytes) -> Any:
    (tmp_path / "1-2.holders").write_bytes(data)
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        owners = (os.geteuid(),)
        return read_holders("1-2.ring", dir_fd=fd, owners=owners, pid=1, began_at_s=90.0)
    finally:
        os.close(fd)


def test_what_the_probe_writes_is_read(tmp_path: Path) -> None:
    found, files = read(tmp_path, json.dumps(document()).encode())
    assert files == ("/train.py",)
    assert (found.watched_steps, found.watched_s) == (5, 1.5)
    assert (found.model_bytes, found.batch_bytes) == (4096, 8192)
    assert found.activations == ((5120, ("Linear", "ReLU")),)
    (line,) = found.allocated
    assert (line.line.line, line.bytes_per_step, line.is_device) == (9, 2048.0, True)
    (holder,) = found.holders
    assert holder.sizes == (
        Size(at_s=10.0, step=None, size=0.0),
        Size(at_s=11.0, step=40, size=40.0),
        Size(at_s=11.5, step=45, size=44.0),
        Size(at_s=13.0, step=90, size=40.0),  # it has not grown since
        Size(at_s=13.5, step=95, size=40.0),
    )
    assert (holder.path[0].name, holder.bytes_per_unit, holder.kind.value) == (
        "losses",
        512.5,
        "graph",
    )


def test_sizes_at_walks_that_are_no_longer_listed_are_between_their_neighbors(
    tmp_path: Path,
) -> None:
    """Of a long run half of the walks are dropped, and half of the sizes: not the same ones."""
    place = {
        **document()["places"][0],
        "sizes": [[0, 1.0], [2, 20.0], [4, 40.0], [7, 70.0]],
        "last_walk": 6,
        "readings": [],
    }
    walks = [[1, -(1 << 63), 100.0], [3, 20, 102.0], [5, 40, 104.0], [6, 50, 105.0]]
    found, _ = read(
        tmp_path, json.dumps({**document(), "walks": walks, "places": [place]}).encode()
    )
    assert found.holders[0].sizes == (
        Size(at_s=11.0, step=None, size=20.0),
        Size(at_s=13.0, step=30, size=40.0),
        Size(at_s=15.0, step=50, size=40.0),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"walks": []},
        {"walks": [[1, 2, float("inf"), 0, 0]]},
        {"walks": {"a": 1}},
        {"files": [1]},
        {"places": [{}]},
        {"places": [1]},
        {"places": [{**document()["places"][0], "unit": "kilograms"}]},
        {"places": [{**document()["places"][0], "path": [["magic", "a", "b", "c", 1]]}]},
        {"places": [{**document()["places"][0], "bytes": "many"}]},
        {"places": [{**document()["places"][0], "readings": [[1, "soon", 3.0]]}]},
    ],
)
def test_what_no_probe_writes_counts_as_absent(tmp_path: Path, change: dict[str, Any]) -> None:
    assert read(tmp_path, json.dumps({**document(), **change}).encode()) is None


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"\0" * 99, b"null", b"{}"])
def test_damaged_files_count_as_absent(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, data) is None


def test_long_names_are_cut_and_large_lists_limited(tmp_path: Path) -> None:
    large = document()
    large["places"] = large["places"] * 5000
    large["places"][0] = {**large["places"][0], "type": "x" * 10_000}
    found, _ = read(tmp_path, json.dumps(large).encode()[: 1 << 26]) or (None, ())
    assert found is None or len(found.holders) <= 16


def test_links_and_fifos_are_not_read(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(json.dumps(document()), encoding="utf-8")
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        (tmp_path / "1-2.holders").symlink_to(elsewhere)
        os.mkfifo(tmp_path / "3-4.holders")
        for ring in ("1-2.ring", "3-4.ring", "5-6.ring"):
            assert read_holders(ring, dir_fd=fd, owners=(0,), pid=1, began_at_s=0.0) is None
    finally:
        os.close(fd)


def test_file_is_replaced_at_once_and_removed_with_the_channel(tmp_path: Path) -> None:
    directory = create(tmp_path / "base")
    ring = Ring(str(directory), ProcessIdentity())
    ring.write_beside(b"first", ring_format.HOLDERS_SUFFIX)
    ring.write_beside(json.dumps(document()).encode(), ring_format.HOLDERS_SUFFIX)
    names = sorted(path.suffix for path in directory.iterdir())
    assert names == [ring_format.HOLDERS_SUFFIX, ring_format.SUFFIX]
    reader = ChannelReader(directory)
    reader.drain()
    (found,) = reader.holders(90.0)
    assert found.pid == os.getpid()
    reader.close()
    remove(directory)
    assert not directory.exists()

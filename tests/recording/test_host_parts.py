"""A machine's memory in columns that are called used, free, cached and buffers."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdiag.recording.read import read
from memdiag.values.measurements import Role


def log(path: Path, header: str, *parts: int, step: int = 1) -> str:
    rows = [
        ",".join([str(30 * row), *(str(part + row * step) for part in parts)]) for row in range(20)
    ]
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("size", "step", "factor"),
    [(2**20, 4, 2**10), (2**10, 1, 2**20), (2**30, 4096, 1)],
    ids=["KiB", "MiB", "bytes"],
)
def test_the_numbers_show_their_unit(tmp_path: Path, size: int, step: int, factor: int) -> None:
    parts = (3 * size, 2 * size, size)
    recording = read(log(tmp_path / "log.csv", "time_s,used,free,buff/cache", *parts, step=step))
    used = next(one for one in recording.series if "used" in one.column)
    assert used.role is Role.HOST
    assert used.y[0] == parts[0] * factor
    assert any("memory of a machine, in" in note for note in recording.notes)


def test_a_unit_in_the_names_is_kept(tmp_path: Path) -> None:
    header = "time_s,used_mb,free_mb,cached_mb,buffers_mb"
    recording = read(log(tmp_path / "log.csv", header, 3000, 2000, 1000, 100))
    used = next(one for one in recording.series if "used" in one.column)
    assert used.y[0] == 3000e6


def test_what_is_used_and_free_without_buffers_may_be_of_a_disk(tmp_path: Path) -> None:
    recording = read(log(tmp_path / "log.csv", "time_s,used,free", 3000, 2000))
    assert not any("used" in one.column for one in recording.series)


@pytest.mark.parametrize(
    "header",
    [
        "time_s,mem_total,mem_free,mem_cached,mem_buffers",
        "time_s,MemTotal (kB),MemFree (kB),Cached (kB),Buffers (kB)",
        (
            "time_s,node_memory_MemTotal_bytes,node_memory_MemFree_bytes,node_memory_Cached_bytes,"
            "node_memory_Buffers_bytes"
        ),
    ],
)
def test_free_and_cached_memory_together_are_available(tmp_path: Path, header: str) -> None:
    recording = read(log(tmp_path / "log.csv", header, 64 << 20, 40 << 20, 12 << 20, 1 << 20))
    parts = [one for one in recording.series if one.role is Role.HOST and one.falling]
    assert [one.column.lower().count("available") for one in parts] == [1]
    assert parts[0].y[-1] / parts[0].y[0] == pytest.approx(1 + 3 * 19 / (53 << 20))
    assert any(note.endswith("their sum is available") for note in recording.notes)


@pytest.mark.parametrize(
    "header",
    [
        "time_s,mem_free,mem_used,mem_cached,mem_buffers",
        "time_s,mem_free,mem_available,mem_cached,mem_buffers",
        "time_s,gpu_free_mb,gpu_cached_mb,gpu_total_mb,gpu_reserved_mb",
        "time_s,mem_free_mb,mem_cached_gb,mem_total_gb,mem_buffers_gb",
    ],
)
def test_nothing_is_summed_if_it_is_recorded_or_of_other_memory(
    tmp_path: Path, header: str
) -> None:
    recording = read(log(tmp_path / "log.csv", header, 30000, 20000, 10000, 100))
    assert not any("their sum" in note for note in recording.notes)


def test_each_machine_has_what_is_available_to_it(tmp_path: Path) -> None:
    header = "time_s,web mem free,web mem cached,db mem free,db mem cached"
    recording = read(log(tmp_path / "log.csv", header, 3 << 20, 1 << 20, 5 << 20, 2 << 20))
    sums = {one.column: one.y[0] for one in recording.series}
    assert sums == {"web mem available": 4 << 20, "db mem available": 7 << 20}

"""The charge of a control group stands for a tree only where the group is the tree's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from process_tables import FakeClock

from memdiag.capture.process.cgroup import MemoryGroup
from memdiag.capture.process.cgroup_charge import METRIC, GroupCharge
from memdiag.capture.process.tree import TREE, Process, ProcessId

STATS = {
    1: "rss 100\nshmem 7\ntotal_cache 900\ntotal_rss 5000000\n",
    2: "anon 5000000\nfile 900\nkernel 70\n",
}
JOB = [Process(id=ProcessId(pid, 1), name="python") for pid in (4000001, 4000002)]


def group_of(root: Path, version: int, pids: list[int], below: list[int]) -> MemoryGroup:
    inner = root / "inner"
    inner.mkdir()
    (root / "memory.stat").write_text(STATS[version])
    (root / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    (inner / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in below))
    return MemoryGroup(levels=(root,), version=version)


def read(group: MemoryGroup | None, job: list[Process] = JOB) -> object:
    charge = GroupCharge(lambda: group, clock=FakeClock())
    return charge.read(job).get(TREE, {}).get(METRIC)


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_of_the_jobs_own_has_its_charge(tmp_path: Path, version: int) -> None:
    assert read(group_of(tmp_path, version, [4000001], [4000002])) == 5_000_000


def test_a_group_with_others_has_none(tmp_path: Path) -> None:
    assert read(group_of(tmp_path, 2, [4000001, 4000002, 4000003], [])) is None


def test_a_group_with_processes_of_other_namespaces_has_none(tmp_path: Path) -> None:
    """Their pid is 0."""
    assert read(group_of(tmp_path, 2, [4000001, 4000002], [0])) is None


def test_a_group_that_lacks_a_process_of_the_job_has_none(tmp_path: Path) -> None:
    assert read(group_of(tmp_path, 2, [4000001], [])) is None


def test_memdiags_own_memory_is_subtracted(tmp_path: Path) -> None:
    group = group_of(tmp_path, 2, [4000001, 4000002, os.getpid()], [])
    (tmp_path / "memory.stat").write_text(f"anon {1 << 40}\n")
    charge = read(group)
    assert isinstance(charge, int)
    assert (1 << 40) - (4 << 30) < charge < (1 << 40)


def test_a_single_process_needs_none(tmp_path: Path) -> None:
    assert read(group_of(tmp_path, 2, [4000001], []), JOB[:1]) is None


def test_no_group_is_no_reading() -> None:
    assert read(None) is None

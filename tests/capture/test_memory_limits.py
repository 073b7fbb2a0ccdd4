"""Limits on host memory, read from simulated /proc and /sys/fs/cgroup trees."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from memdiag.capture.process.cgroup import memory_group
from memdiag.capture.process.memory_limits import LimitWatch, machine, rlimits
from memdiag.capture.process.tree import Process, ProcessId
from memdiag.values.measurements import Role

GIB = 1 << 30
V1_NO_LIMIT = "9223372036854771712\n"
MEMINFO = """\
MemTotal:       16777216 kB
MemFree:         1048576 kB
MemAvailable:    8388608 kB
SwapTotal:             0 kB
SwapFree:              0 kB
"""
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max data size             unlimited            unlimited            bytes
Max resident set          1000                 unlimited            bytes
Max address space         {address_space}      unlimited            bytes
"""


SEVEN = Process(id=ProcessId(7, 1), name="seven")


class HandClock:
    """Goes when told to."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_s(self) -> float:
        return self.at_s


class Tree:
    """A made-up /proc and /sys/fs/cgroup for pid 7."""

    def __init__(self, root: Path) -> None:
        self.proc = root / "proc"
        self.cgroups = root / "cgroup dir"  # mountinfo writes the blank as \040
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "7").mkdir()
        self.write(self.proc / "meminfo", MEMINFO)

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def mount(self, kind: str, options: str, *, at: Path | None = None, root: str = "/") -> None:
        point = str(at or self.cgroups).replace(" ", "\\040")
        with (self.proc / "self" / "mountinfo").open("a") as file:
            file.write(f"41 31 0:38 {root} {point} rw,relatime - {kind} {kind} {options}\n")

    def v2(self, path: str, limits: dict[str, str], *, root: str = "/") -> None:
        self.mount("cgroup2", "rw", root=root)
        self.write(self.proc / "7" / "cgroup", f"0::{path}\n")
        for group, limit in limits.items():
            self.write(self.cgroups / group / "memory.max", limit + "\n")

    def holds(self, address_space: int, resident: int, *, data: int = 0) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        fields = (address_space // page, resident // page, 0, 0, 0, data // page, 0)
        self.write(self.proc / "7" / "statm", " ".join(map(str, fields)) + "\n")

    def limits(self) -> dict[str, int]:
        watch = LimitWatch(7, proc=self.proc)
        assert watch.read([SEVEN]) == {}
        found = watch.limits()
        assert all(Role.RESIDENT in limit.roles for limit in found)
        assert [limit.value_bytes for limit in found] == sorted(f.value_bytes for f in found)
        return {limit.name: limit.value_bytes for limit in found}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_the_tightest_of_nested_groups_counts(tree: Tree) -> None:
    tree.v2("/a/b/c", {"a": str(4 * GIB), "a/b": str(2 * GIB), "a/b/c": "max"})
    assert tree.limits()["cgroup memory.max"] == 2 * GIB


def test_no_limit_is_no_limit(tree: Tree) -> None:
    tree.v2("/a", {"a": "max", ".": "max"})
    assert "cgroup memory.max" not in tree.limits()


def test_a_container_sees_its_own_group_as_the_root(tree: Tree) -> None:
    tree.v2("/", {".": str(3 * GIB)})
    assert tree.limits() == {"cgroup memory.max": 3 * GIB, "host RAM": 8 * GIB}


@pytest.mark.parametrize("path", ["/../outside", "/docker/0123abcd"])
def test_a_group_out_of_sight_leaves_the_mount_itself(tree: Tree, path: str) -> None:
    tree.v2(path, {".": str(3 * GIB)})
    assert tree.limits()["cgroup memory.max"] == 3 * GIB


def test_a_mount_of_a_part_of_the_hierarchy_is_looked_up_below_it(tree: Tree) -> None:
    tree.v2("/docker/0123/job", {"job": str(GIB), ".": "max"}, root="/docker/0123")
    assert tree.limits()["cgroup memory.max"] == GIB


def test_version_1_and_hybrid_machines(tree: Tree) -> None:
    memory = tree.cgroups / "memory"
    tree.mount("cgroup2", "rw", at=tree.cgroups / "unified")
    tree.mount("cgroup", "rw,memory", at=memory)
    tree.write(tree.proc / "7" / "cgroup", "8:pids:/\n4:memory:/job\n0::/\n")
    tree.write(memory / "memory.limit_in_bytes", V1_NO_LIMIT)
    tree.write(memory / "job" / "memory.limit_in_bytes", f"{5 * GIB}\n")
    assert tree.limits() == {"cgroup memory.limit_in_bytes": 5 * GIB, "host RAM": 8 * GIB}


def test_version_1_without_limit_has_none(tree: Tree) -> None:
    tree.mount("cgroup", "rw,memory")
    tree.write(tree.proc / "7" / "cgroup", "4:memory:/\n")
    tree.write(tree.cgroups / "memory.limit_in_bytes", V1_NO_LIMIT)
    assert list(tree.limits()) == ["host RAM"]


def test_what_the_target_holds_is_available_to_it(tree: Tree) -> None:
    tree.holds(5 * GIB, 2 * GIB)
    assert tree.limits() == {"host RAM": 10 * GIB}
    tree.holds(50 * GIB, 30 * GIB)
    assert tree.limits() == {"host RAM": 16 * GIB}  # never more than there is


def test_swap_is_named_where_there_is_some(tree: Tree) -> None:
    text = MEMINFO.replace("SwapFree:              0", "SwapFree:        4194304")
    tree.write(tree.proc / "meminfo", text)
    assert list(tree.limits()) == ["host RAM, then swap"]


def test_an_address_space_limit_counts_what_is_never_resident(tree: Tree) -> None:
    tree.write(tree.proc / "7" / "limits", LIMITS.format(address_space=4 * GIB))
    tree.holds(3 * GIB, GIB)
    # 1 GiB is resident and 1 GiB of address space is left: 2 GiB can become resident.
    assert tree.limits()["RLIMIT_AS"] == 2 * GIB
    assert "RLIMIT_RSS" not in tree.limits()  # not enforced by Linux


def test_the_process_limits_outlive_the_process(tree: Tree) -> None:
    tree.write(tree.proc / "7" / "limits", LIMITS.format(address_space=4 * GIB))
    tree.holds(3 * GIB, GIB)
    clock = HandClock()
    watch = LimitWatch(7, clock=clock, proc=tree.proc)
    watch.read([SEVEN])
    tree.holds(0, 0)  # a zombie
    clock.at_s = 100.0
    watch.read([])
    assert {limit.name: limit.value_bytes for limit in watch.limits()}["RLIMIT_AS"] == 2 * GIB


def test_limits_that_move_are_followed_at_leisure(tree: Tree) -> None:
    tree.v2("/a", {"a": str(4 * GIB)})
    clock = HandClock()
    watch = LimitWatch(7, clock=clock, proc=tree.proc)
    watch.read([SEVEN])
    tree.write(tree.cgroups / "a" / "memory.max", str(GIB))
    clock.at_s = 1000.0
    watch.read([SEVEN])
    tightest = watch.limits()[0]
    assert (tightest.name, tightest.value_bytes) == ("cgroup memory.max", GIB)
    tree.write(tree.cgroups / "a" / "memory.max", str(2 * GIB))
    clock.at_s = 1005.0
    watch.read([SEVEN])
    assert watch.limits()[0].value_bytes == GIB  # not yet
    clock.at_s = 1010.0
    watch.read([SEVEN])
    assert watch.limits()[0].value_bytes == 2 * GIB


def test_nothing_readable_means_no_limits(tmp_path: Path) -> None:
    empty = tmp_path / "proc"
    (empty / "7").mkdir(parents=True)
    (empty / "meminfo").write_text("garbage\n")
    (empty / "7" / "cgroup").write_text("garbage\n::\n")
    assert LimitWatch(7, proc=empty).limits() == ()
    assert memory_group(7, proc=empty) is None


def test_this_process_has_limits_that_make_sense() -> None:
    host = machine()
    assert host is not None
    assert 0 < host.available_bytes <= host.total_bytes
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    assert rlimits(os.getpid()).get("RLIMIT_AS", resource.RLIM_INFINITY) == soft
    names = [limit.name for limit in LimitWatch(os.getpid()).limits()]
    assert any(name.startswith("host RAM") for name in names)

"""The anonymous memory charged to the control group of a target that has one of its own.

A page that several processes share is charged once. So where forked workers make copies of the
parent's pages, the charge grows while the sum of RSS does not. It takes 40 us to read, whatever the
size; PSS takes 11-20 ms per GiB and process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memdiag.capture.process.cgroup import PROC, MemoryGroup
from memdiag.capture.process.clock import Clock, MonotonicClock
from memdiag.capture.process.sampler import Readings
from memdiag.capture.process.tree import TREE, Process

METRIC = "cgroup_anon_bytes"
_EVERY_S = 0.5


class GroupCharge:
    """`cgroup_anon_bytes` of a tree with several processes: a `Source`.

    There is no reading while the group holds processes of others. memdiag itself and the processes
    that started it may be in it, as in a container: their own anonymous memory is subtracted.
    """

    def __init__(
        self,
        group: Callable[[], MemoryGroup | None],
        *,
        helpers: frozenset[int] = frozenset(),
        clock: Clock | None = None,
        proc: Path = PROC,
    ) -> None:
        """group: the control group of the target now. helpers: pids of memdiag's own processes."""
        self._group = group
        self._helpers = helpers
        self._clock = clock or MonotonicClock()
        self._proc = proc
        self._read_at_s = float("-inf")
        self._has_children = False

    def read(self, processes: Sequence[Process]) -> Readings:
        """The charge, if due."""
        self._has_children = self._has_children or len(processes) > 1
        now_s = self._clock.now_s()
        if not self._has_children or now_s - self._read_at_s < _EVERY_S:
            return {}
        group = self._group()
        if group is None:
            return {}
        self._read_at_s = now_s
        own = {process.id.pid for process in processes}
        members = set(_members(group.levels[0]))
        if not own <= members:
            return {}
        others = members - own
        if others and not others <= {*self._helpers, *_ancestors(os.getpid(), self._proc)}:
            return {}
        charged = group.anonymous_bytes()
        shares = [_anonymous_bytes(pid, self._proc) for pid in others]
        return {} if charged is None else {TREE: {METRIC: max(0, charged - sum(shares))}}


def _members(group: Path) -> Iterator[int]:
    """Pids in the group and in those below it. A process that is not visible here has pid 0."""
    for directory, _, files in os.walk(group):
        if "cgroup.procs" in files:
            try:
                yield from map(int, _content(f"{directory}/cgroup.procs").split())
            except (OSError, ValueError):
                yield 0


def _ancestors(pid: int, proc: Path) -> Iterator[int]:
    """The process and those that started it."""
    while pid > 0:
        yield pid
        try:
            pid = int(_content(f"{proc}/{pid}/stat").rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return


def _anonymous_bytes(pid: int, proc: Path) -> int:
    try:
        fields = _content(f"{proc}/{pid}/statm").split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - half the cost
        return file.readall()

"""The limits of a target's host memory: container, process and machine.

Each is given as the resident memory at which it is reached, so that one series can be compared with
all of them. They change (other programs start and end, a container is resized), so they are read
repeatedly, and the latest ones count.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memdiag.capture.process.cgroup import (
    PROC,
    MemoryGroup,
    OomCounters,
    memory_group,
    oom_counters,
)
from memdiag.capture.process.clock import Clock, MonotonicClock
from memdiag.capture.process.sampler import Readings
from memdiag.capture.process.tree import Process
from memdiag.values.measurements import Limit, Role

_HOST_ROLES = frozenset({Role.RESIDENT, Role.UNIQUE, Role.PROPORTIONAL})
# setrlimit(2). RLIMIT_RSS is not here: Linux has not enforced it since 2.4.30.
_RLIMITS = {"Max address space": "RLIMIT_AS", "Max data size": "RLIMIT_DATA"}
_KIB = 1024
LONGEST_PAUSE_S = 10.0  # other programs and container sizes change slowly (heuristic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The host's memory now. available_bytes: available without swapping (MemAvailable)."""

    total_bytes: int
    available_bytes: int
    swap_total_bytes: int
    swap_free_bytes: int


class LimitWatch:
    """The limits of one target, read repeatedly: a `Source` without metrics.

    After the target has ended the last values remain.

    group: the control group of the target, which may move itself (`systemd-run --scope`).
    oom_before: the OOM killer's counts when the target was first seen in the group.
    """

    def __init__(
        self,
        pid: int,
        *,
        longest_pause_s: float = LONGEST_PAUSE_S,
        clock: Clock | None = None,
        proc: Path = PROC,
    ) -> None:
        """longest_pause_s: the longest time between two reads."""
        self._pid = pid
        self._longest_pause_s = longest_pause_s
        self._proc = proc
        self._clock = clock or MonotonicClock()
        self._began_s = self._read_at_s = self._clock.now_s()
        self._rlimits: tuple[Limit, ...] = ()
        self._latest: tuple[Limit, ...] = ()
        self.group: MemoryGroup | None = None
        self.oom_before = OomCounters(group=None, machine=None)
        self._find_group()

    def read(self, processes: Sequence[Process]) -> Readings:
        """Read the limits if due: each time at double the age, later after the longest pause."""
        now_s = self._clock.now_s()
        pause_s = min(self._longest_pause_s, self._read_at_s - self._began_s)
        if not self._latest or now_s - self._read_at_s >= pause_s:
            self._read_at_s = now_s
            self._update([process.id.pid for process in processes])
        return {}

    def limits(self) -> tuple[Limit, ...]:
        """The latest limits, the lowest first."""
        if not self._latest:
            self._update([])
        return self._latest

    def _update(self, pids: Sequence[int]) -> None:
        self._find_group()
        sizes = [virtual_and_resident(pid, proc=self._proc) for pid in pids]
        tree_bytes = sum(size[2] for size in sizes if size is not None)
        limits = [*self._container(), *self._process(), *self._machine(tree_bytes)]
        self._latest = tuple(sorted(limits, key=lambda limit: limit.value_bytes))

    def _find_group(self) -> None:
        group = memory_group(self._pid, proc=self._proc)
        if group is not None and group != self.group:
            self.group = group
            self.oom_before = oom_counters(group, proc=self._proc)

    def _container(self) -> list[Limit]:
        found = self.group.limit() if self.group is not None else None
        if self.group is None or found is None:
            return []
        name = f"cgroup {self.group.limit_file}"
        return [Limit(name=name, value_bytes=found[0], roles=_HOST_ROLES)]

    def _process(self) -> tuple[Limit, ...]:
        """The target's resource limits, in terms of resident memory.

        They limit address space, of which a part never becomes resident. Both grow by the same
        amount, so the limit of resident memory is the limit minus that part.
        """
        used = virtual_and_resident(self._pid, proc=self._proc)
        if used is not None:
            limits = rlimits(self._pid, proc=self._proc)
            never_resident = {"RLIMIT_AS": used[0] - used[2], "RLIMIT_DATA": used[1] - used[2]}
            self._rlimits = tuple(
                Limit(
                    name=name,
                    value_bytes=max(value - max(never_resident[name], 0), 0),
                    roles=_HOST_ROLES,
                    per_process=True,
                )
                for name, value in limits.items()
            )
        return self._rlimits

    def _machine(self, tree_bytes: int) -> list[Limit]:
        """The memory that the machine has left for the target, plus the target's own."""
        host = machine(proc=self._proc)
        if host is None:
            return []
        name = "host RAM, then swap" if host.swap_free_bytes else "host RAM"
        value = min(host.available_bytes + tree_bytes, host.total_bytes)
        return [Limit(name=name, value_bytes=value, roles=_HOST_ROLES)]


def machine(*, proc: Path = PROC) -> Machine | None:
    """The host's memory; None if unknown."""
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return _portable_machine()
    found: dict[str, int] = {}
    for line in lines:
        name, _, rest = line.partition(":")
        fields = rest.split()
        if fields and fields[0].isdigit():
            found[name] = int(fields[0]) * _KIB
    if "MemTotal" not in found:
        return None
    return Machine(
        total_bytes=found["MemTotal"],
        available_bytes=found.get("MemAvailable", found.get("MemFree", 0)),
        swap_total_bytes=found.get("SwapTotal", 0),
        swap_free_bytes=found.get("SwapFree", 0),
    )


def _portable_machine() -> Machine | None:
    import psutil

    try:
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    except (OSError, RuntimeError):
        return None
    return Machine(
        total_bytes=memory.total,
        available_bytes=memory.available,
        swap_total_bytes=swap.total,
        swap_free_bytes=swap.free,
    )


def rlimits(pid: int, *, proc: Path = PROC) -> dict[str, int]:
    """The soft limits on a process's memory that are set and enforced: name -> bytes."""
    try:
        text = (proc / str(pid) / "limits").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines():
        for title, name in _RLIMITS.items():
            values = line.removeprefix(title).split() if line.startswith(title) else []
            if values and values[0].isdigit():
                found[name] = int(values[0])
    return found


def virtual_and_resident(pid: int, *, proc: Path = PROC) -> tuple[int, int, int] | None:
    """(address space, data and stack, resident) in bytes; None if the process has ended."""
    try:
        with open(f"{proc}/{pid}/statm", "rb", buffering=0) as file:  # noqa: PTH123 - half the cost
            fields = [int(field) for field in file.read(256).split()]
    except (OSError, ValueError):
        return None
    if len(fields) < 6 or fields[0] == 0:  # a zombie has no memory
        return None
    page = os.sysconf("SC_PAGE_SIZE")
    return fields[0] * page, fields[5] * page, fields[1] * page

"""A process table to play with: processes are born, have children, die, and leave their pid."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from memdiag.capture.process.tree import Newborn, Process, ProcessId
from memdiag.values.measurements import Unavailable


@dataclass(slots=True)
class _Entry:
    started: float
    name: str
    parent: int
    rss: int | Unavailable


class FakeTable:
    """Implements `memdiag.capture.process.tree.ProcessTable`."""

    tells_newborn = False

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._clock = 0.0
        self.births_so_far: int | None = 0
        self.searches = 0
        self.unseen: list[int] = []
        self.forgotten: list[ProcessId] = []

    def spawn(
        self, pid: int, *, parent: int = 1, rss: int | Unavailable = 1000, name: str = "python"
    ) -> ProcessId:
        self._clock += 1
        self._entries[pid] = _Entry(self._clock, name, parent, rss)
        if self.births_so_far is not None:
            self.births_so_far += 1
        return ProcessId(pid, self._clock)

    def execute(self, pid: int, name: str) -> None:
        self._entries[pid].name = name

    def kill(self, pid: int, *, heir: int = 1) -> None:
        del self._entries[pid]
        for entry in self._entries.values():
            if entry.parent == pid:
                entry.parent = heir

    def grow(self, pid: int, rss: int) -> None:
        self._entries[pid].rss = rss

    def find(self, pid: int) -> Process | None:
        entry = self._entries.get(pid)
        if entry is None:
            return None
        return Process(id=ProcessId(pid, entry.started), name=entry.name, parent=entry.parent)

    def children(self, pid: int) -> Iterable[int]:
        self.searches += 1
        return [child for child, entry in self._entries.items() if entry.parent == pid]

    def resident_bytes(self, process: ProcessId) -> int | Unavailable | None:
        entry = self._entries.get(process.pid)
        return entry.rss if entry is not None and entry.started == process.started else None

    def details(self, process: ProcessId) -> Mapping[str, int | Unavailable] | None:
        rss = self.resident_bytes(process)
        return None if rss is None else {"uss_bytes": rss, "pss_bytes": rss, "swap_bytes": 0}

    def forget(self, process: ProcessId) -> None:
        self.forgotten.append(process)

    def births(self) -> int | None:
        return self.births_so_far

    def born_to(self, parents: Collection[int], since: int, until: int) -> Newborn | None:
        if not self.tells_newborn:
            return None
        family, found = set(parents), []
        for pid, entry in self._entries.items():
            if since < entry.started <= until and entry.parent in family:
                family.add(pid)
                found.append(pid)
        return Newborn([pid for pid in found if pid not in self.unseen], tuple(self.unseen))


class FakeClock:
    """Implements `memdiag.capture.process.clock.Clock`; stands still until it is moved."""

    def __init__(self, s: float = 100.0) -> None:
        self.s = s

    def now_s(self) -> float:
        return self.s

"""The processes of the target: their identities, and which of them are alive.

A pid alone does not identify a process, because it is reused. Identity is pid and start time, and
every reading of a process fails if another process has the pid by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from memdiag.capture.process.clock import Budget, Clock, MonotonicClock
from memdiag.values.measurements import Unavailable


class ProcessId(NamedTuple):
    """Identity of a process. `started` is exact, in a unit of the system, and only compared.

    A tuple, because it is hashed hundreds of times a second: that takes half the time.
    """

    pid: int
    started: float


# The whole tree, in the place of a process.
TREE = ProcessId(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A live process. `name` is its short name as the system gives it: untrusted text. `parent` is
    the pid of its parent when it was found, 0 if unknown."""

    id: ProcessId
    name: str
    parent: int = field(default=0, compare=False)  # later it may have been adopted


class Newborn(NamedTuple):
    """Pids of live processes, and pids that were just assigned but are not visible yet."""

    born: Sequence[int]
    unseen: Sequence[int] = ()


class ProcessTable(Protocol):
    """The system's information on processes. Nothing here raises for a process that has ended or
    belongs to another user: these are values."""

    def find(self, pid: int) -> Process | None:
        """The live process on `pid`; None if there is none, or only a zombie."""

    def children(self, pid: int) -> Iterable[int]:
        """Pids of the direct children of all threads of `pid`."""

    def resident_bytes(self, process: ProcessId) -> int | Unavailable | None:
        """Resident set size; None if the process has ended."""

    def details(self, process: ProcessId) -> Mapping[str, int | Unavailable] | None:
        """`uss_bytes`, `pss_bytes`, `swap_bytes`, or reasons; None if it has ended. Slow."""

    def forget(self, process: ProcessId) -> None:
        """Release what is kept for a process that has ended."""

    def births(self) -> int | None:
        """A number that changes whenever a process starts; None if the system has none."""

    def born_to(self, parents: Collection[int], since: int, until: int) -> Newborn | None:
        """Descendants of `parents` started between two values of `births`; None if finding them is
        expensive."""


class ProcessTree:
    """The target and all its descendants, including those that daemonize.

    A process that was seen once stays in the tree until it ends, whatever its parent is then. With
    `adopter` (memdiag as a child subreaper, see `target`), orphans that were never seen are found
    among its children; `strangers` are children of it that do not belong to the target.
    """

    # Share of the time for searching new processes. Heuristic: a search of 10 processes with 2
    # threads each (0.2 ms) still happens at every tick of 0.1 s.
    SEARCH_SHARE = 0.002
    # Shares of the time for checking only new pids for their parents: when other programs start
    # processes, and when the tree does. Meanwhile the whole tree is searched at this interval, to
    # find what the check misses (a pid chosen by a checkpoint/restore tool). Heuristic.
    CHECK_SHARE, CHECK_OWN_SHARE, SEARCH_EVERY_S = 0.001, 0.01, 2.0
    # A process may change its name by exec, mostly soon after its start (shims, wrappers): the name
    # is read at the first reads, and then at every fiftieth. Heuristic.
    YOUNG_READS, NAME_EVERY = 30, 50

    def __init__(
        self,
        table: ProcessTable,
        *,
        root: int,
        adopter: int | None = None,
        strangers: frozenset[int] = frozenset(),
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or MonotonicClock()
        self._table = table
        self._root = root
        self._adopter = adopter
        self._strangers = strangers
        self._alive: dict[int, Process] = {}
        self._reads = 0
        self._name_until: dict[int, int] = {}  # young processes: the last read of their name
        self._births: int | None = None
        self._budget = Budget(clock=self._clock, share=self.SEARCH_SHARE)
        self._check_budget = Budget(clock=self._clock, share=self.CHECK_SHARE)
        self._searched_s = float("-inf")
        self._unseen: Sequence[int] = ()
        self.seen = 0

    def processes(self) -> tuple[Process, ...]:
        """The processes alive at the last read, the root first, then in order of discovery."""
        return tuple(self._alive.values())

    def read(self) -> list[tuple[Process, int | Unavailable]]:
        """Every live process of the tree with its resident bytes, now."""
        self._search()
        found = []
        self._reads += 1
        all_names = self._reads % self.NAME_EVERY == 0
        for process in tuple(self._alive.values()):
            resident = self._table.resident_bytes(process.id)
            if resident is None:
                self._drop(process)
                continue
            if all_names or process.id.pid in self._name_until:
                process = self._with_current_name(process)  # noqa: PLW2901
            found.append((process, resident))
        return found

    def _with_current_name(self, process: Process) -> Process:
        """The process with its current name."""
        pid = process.id.pid
        if self._reads >= self._name_until.get(pid, self._reads):
            self._name_until.pop(pid, None)
        now = self._table.find(pid)
        if now is None or now.id != process.id or now == process:
            return process
        renamed = self._alive[pid] = replace(process, name=now.name)
        return renamed

    def _search(self) -> None:
        births = self._table.births()
        if births is not None and births == self._births and not self._unseen:
            return  # no process has started on this machine since the last search
        began_s = self._clock.now_s()
        if self._add_newborn(births) and began_s - self._searched_s < self.SEARCH_EVERY_S:
            self._births = births
            return
        if not self._budget.due():
            return
        self._births, self._unseen = births, ()
        self._searched_s = began_s
        self._walk()
        self._budget.spent(self._clock.now_s() - began_s)

    def _add_newborn(self, births: int | None) -> bool:
        """Add processes started since the last search; False if only a search can find them."""
        if (
            births is None
            or self._births is None
            or not self._alive
            or not self._check_budget.due()
        ):
            return False
        began_s = self._clock.now_s()
        parents = {*self._alive, *(() if self._adopter is None else (self._adopter,))}
        since = min((self._births, *(pid - 1 for pid in self._unseen)))
        newborn = self._table.born_to(parents, since, births)
        self._unseen = ()
        if newborn is None:
            return False
        for pid in newborn.born:
            self._add_new(pid, is_new=pid > self._births)
        # Pids that were not visible at a second check do not belong to processes.
        self._unseen = [pid for pid in newborn.unseen if pid > self._births]
        own = bool(newborn.born)
        cost_s = self._clock.now_s() - began_s
        self._check_budget.spent(cost_s * (self.CHECK_SHARE / self.CHECK_OWN_SHARE if own else 1.0))
        return True

    def _add_new(self, pid: int, *, is_new: bool) -> None:
        if is_new and pid in self._alive:  # the pid was reused
            self._drop(self._alive[pid])
        if pid not in self._strangers and pid not in self._alive:
            self._add(pid)

    def _walk(self) -> None:
        for process in tuple(self._alive.values()):
            if self._table.resident_bytes(process.id) is None:
                self._drop(
                    process
                )  # a process that reuses its pid counts if its parent is in the tree
        todo = deque(self._alive if self.seen else (self._root,))
        if self._adopter is not None:
            todo += self._table.children(self._adopter)
        visited = set(self._strangers)
        while todo:
            pid = todo.popleft()
            if pid not in visited and (pid in self._alive or self._add(pid)):
                todo += self._table.children(pid)
            visited.add(pid)

    def _add(self, pid: int) -> bool:
        process = self._table.find(pid)
        if process is not None:
            self._alive[pid] = process
            self._name_until[pid] = self._reads + self.YOUNG_READS
            self.seen += 1
        return process is not None

    def _drop(self, process: Process) -> None:
        del self._alive[process.id.pid]
        self._name_until.pop(process.id.pid, None)
        self._table.forget(process.id)

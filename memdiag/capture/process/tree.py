"""The processes under watch: who they are, and which of them are alive.

A pid alone is no identity: it is given out again. Identity is pid and start time, and whatever is
read of a process is read in a way that a successor on the same pid can never answer for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from memdiag.capture.process.clock import Budget, Clock, MonotonicClock
from memdiag.values.measurements import Unavailable


class ProcessId(NamedTuple):
    """Who a process is. `started` is in the operating system's own unit, exact, only compared.

    A tuple, because it is hashed hundreds of times a second: that takes half the time.
    """

    pid: int
    started: float


# Stands for the whole tree where a process is expected.
TREE = ProcessId(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A live process. `name` is its short name as the system gives it: untrusted text."""

    id: ProcessId
    name: str


class Newborn(NamedTuple):
    """Pids of those that live, and pids given out a moment ago whose owners can't be seen yet."""

    born: Sequence[int]
    unseen: Sequence[int] = ()


class ProcessTable(Protocol):
    """What the operating system tells about processes. Nothing here raises for a process that
    vanished or is not ours: that is a value."""

    def find(self, pid: int) -> Process | None:
        """The live process on `pid`; None if there is none, or only a zombie."""

    def children(self, pid: int) -> Iterable[int]:
        """Pids of the direct children of all threads of `pid`."""

    def resident_bytes(self, process: ProcessId) -> int | Unavailable | None:
        """Resident set size; None when the process is gone."""

    def details(self, process: ProcessId) -> Mapping[str, int | Unavailable] | None:
        """`uss_bytes`, `pss_bytes`, `swap_bytes`, each or a reason; None when it is gone. Slow."""

    def forget(self, process: ProcessId) -> None:
        """Release what is held for a process that is gone."""

    def births(self) -> int | None:
        """A number that changes whenever any process is born; None where there is no such."""

    def born_to(self, parents: Collection[int], since: int, until: int) -> Newborn | None:
        """Those born to `parents`, or to one of themselves, between two values of `births`; None
        where that cannot be told for little."""


class ProcessTree:
    """The target and all its descendants, those included that cut loose.

    A process once seen stays in the tree until it ends, whoever its parent is by then. With
    `adopter` (memdiag itself as a child subreaper, see `target`), orphans that were never seen
    before are found among its children; `strangers` are children of it that are not the target's.
    """

    # Share of the time that may go into looking for new processes: chosen, so that the search
    # of 10 processes with 2 threads each (0.2 ms) still happens on every tick of 0.1 s.
    SEARCH_SHARE = 0.002
    # The same of asking only those that were just born whose children they are: so much for the
    # births of others, and ten times that where the tree itself has children. While that works the
    # whole tree is searched but so often: what it can overlook is rare (a pid chosen by a
    # checkpoint's restorer). Chosen.
    GREET_SHARE, GREET_OWN_SHARE, SEARCH_EVERY_S = 0.001, 0.01, 2.0
    # A process may call exec and go by another name: mostly soon after its birth (shims, shell
    # wrappers), so it is asked at so many looks, and then at every so many. Chosen.
    YOUNG_LOOKS, ASKED_EVERY = 30, 50

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
        self._looks = 0
        self._asked_until: dict[int, int] = {}  # of those young, the look that is the last
        self._births: int | None = None
        self._budget = Budget(clock=self._clock, share=self.SEARCH_SHARE)
        self._greeting = Budget(clock=self._clock, share=self.GREET_SHARE)
        self._searched_s = float("-inf")
        self._unseen: Sequence[int] = ()
        self.seen = 0

    def processes(self) -> tuple[Process, ...]:
        """Those alive at the last look, the root first, then in order of discovery."""
        return tuple(self._alive.values())

    def look(self) -> list[tuple[Process, int | Unavailable]]:
        """Every live process of the tree with its resident bytes, now."""
        self._search()
        found = []
        self._looks += 1
        asks_all = self._looks % self.ASKED_EVERY == 0
        for process in tuple(self._alive.values()):
            resident = self._table.resident_bytes(process.id)
            if resident is None:
                self._drop(process)
                continue
            if asks_all or process.id.pid in self._asked_until:
                process = self._by_its_name(process)  # noqa: PLW2901
            found.append((process, resident))
        return found

    def _by_its_name(self, process: Process) -> Process:
        """The process by the name that it has now."""
        pid = process.id.pid
        if self._looks >= self._asked_until.get(pid, self._looks):
            self._asked_until.pop(pid, None)
        now = self._table.find(pid)
        if now is None or now.id != process.id or now == process:
            return process
        self._alive[pid] = now
        return now

    def _search(self) -> None:
        births = self._table.births()
        if births is not None and births == self._births and not self._unseen:
            return  # nobody was born on this machine since the last search
        began_s = self._clock.now_s()
        if self._greet(births) and began_s - self._searched_s < self.SEARCH_EVERY_S:
            self._births = births
            return
        if not self._budget.due():
            return
        self._births, self._unseen = births, ()
        self._searched_s = began_s
        self._walk()
        self._budget.spent(self._clock.now_s() - began_s)

    def _greet(self, births: int | None) -> bool:
        """Take in those born since the last search; False where it takes a search to know them."""
        if births is None or self._births is None or not self._alive or not self._greeting.due():
            return False
        began_s = self._clock.now_s()
        parents = {*self._alive, *(() if self._adopter is None else (self._adopter,))}
        since = min((self._births, *(pid - 1 for pid in self._unseen)))
        newborn = self._table.born_to(parents, since, births)
        self._unseen = ()
        if newborn is None:
            return False
        for pid in newborn.born:
            self._take_in(pid, is_new=pid > self._births)
        # Those who could not be seen once more will not be.
        self._unseen = [pid for pid in newborn.unseen if pid > self._births]
        own = bool(newborn.born)
        cost_s = self._clock.now_s() - began_s
        self._greeting.spent(cost_s * (self.GREET_SHARE / self.GREET_OWN_SHARE if own else 1.0))
        return True

    def _take_in(self, pid: int, *, is_new: bool) -> None:
        if is_new and pid in self._alive:  # as another one, who must be gone
            self._drop(self._alive[pid])
        if pid not in self._strangers and pid not in self._alive:
            self._meet(pid)

    def _walk(self) -> None:
        for process in tuple(self._alive.values()):
            if self._table.resident_bytes(process.id) is None:
                self._drop(process)  # whoever has its pid now counts if a living parent has it
        todo = deque(self._alive if self.seen else (self._root,))
        if self._adopter is not None:
            todo += self._table.children(self._adopter)
        visited = set(self._strangers)
        while todo:
            pid = todo.popleft()
            if pid not in visited and (pid in self._alive or self._meet(pid)):
                todo += self._table.children(pid)
            visited.add(pid)

    def _meet(self, pid: int) -> bool:
        process = self._table.find(pid)
        if process is not None:
            self._alive[pid] = process
            self._asked_until[pid] = self._looks + self.YOUNG_LOOKS
            self.seen += 1
        return process is not None

    def _drop(self, process: Process) -> None:
        del self._alive[process.id.pid]
        self._asked_until.pop(process.id.pid, None)
        self._table.forget(process.id)


class DetailSource:
    """USS, PSS and swap: a `Source` for the slow lane."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table

    def read(
        self, processes: Iterable[Process]
    ) -> dict[ProcessId, Mapping[str, int | Unavailable]]:
        """`uss_bytes`, `pss_bytes` and `swap_bytes` of each process that is still there."""
        found: dict[ProcessId, Mapping[str, int | Unavailable]] = {}
        for process in processes:
            details = self._table.details(process.id)
            if details is not None:
                found[process.id] = details
        return found

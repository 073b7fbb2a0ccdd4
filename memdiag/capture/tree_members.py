"""The processes of the tree: which are alive, known from before, or young, and their labels.

It is used ten times a second on processes that rarely change, so results are cached until something
about the tree changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memdiag.capture.probelink.uninstrumented import UninstrumentedProcesses
from memdiag.capture.process.labels import LAUNCHERS, Labels, measurable
from memdiag.capture.process.tree import Process, ProcessId
from memdiag.values.measurements import YOUNG_S, Missing


class TreeMembers:
    """The processes of one tree, including those that have ended.

    alive, pids: the live ones at the last `update`.
    """

    def __init__(self, root: int, *, uninstrumented: UninstrumentedProcesses | None = None) -> None:
        """uninstrumented: finds out why processes lack the probe."""
        self._root = root
        self._uninstrumented = uninstrumented
        self._labels = Labels(root)
        self._known: dict[ProcessId, Process] = {}
        self._first_seen_s: dict[ProcessId, float] = {}
        self._grown: set[ProcessId] = set()
        self._unseen: list[Process] = []
        self._followed: list[Process] = []
        self._probe_labels: Mapping[ProcessId, str] = {}
        # Live ones that may still be young, and those still inspected by `uninstrumented`.
        self._children: list[Process] = []
        self._unsettled: list[Process] = []
        self._label_of: dict[ProcessId, str] = {}
        self.alive: frozenset[ProcessId] = frozenset()
        self.measured: Sequence[Process] = ()
        self.pids: frozenset[int] = frozenset()

    def known(self, identity: ProcessId) -> Process | None:
        """The process, if it is known."""
        return self._known.get(identity)

    def update(
        self, processes: list[Process], probe_labels: Mapping[ProcessId, str], now_s: float
    ) -> Sequence[Process]:
        """Set the live processes; returns those that have ended.

        probe_labels: labels of processes by the probe.
        """
        ended = self._change(processes, now_s) if processes != self._followed else []
        if probe_labels != self._probe_labels:
            self._probe_labels = dict(probe_labels)
            self._label_of.clear()
        if self._unsettled and self._uninstrumented is not None:
            look = self._uninstrumented.look
            first_s = self._first_seen_s
            self._unsettled = [p for p in self._unsettled if look(p, now_s - first_s[p.id])]
        return ended

    def all(self) -> tuple[Process, ...]:
        """The processes in order of discovery, without helpers that have ended."""
        return tuple(self._known.values())

    def add_unseen(self, process: Process) -> None:
        """Add a process known only from its events: it may end before a tick sees it."""
        self._known[process.id] = process
        self._unseen.append(process)

    def take_unseen(self) -> list[Process]:
        """Processes that started and ended between two ticks, and are known only from events."""
        unseen, self._unseen = self._unseen, []
        return [one for one in unseen if one.id not in self.alive]

    def young(self, now_s: float) -> Collection[ProcessId]:
        """The live processes that may be short-lived helpers, which are not judged."""
        if not self._children:
            return ()
        self._children = [one for one in self._children if self.is_young(one, now_s)]
        return {one.id for one in self._children}

    def is_young(self, process: Process, now_s: float) -> bool:
        """Return True if the process is new, and only its name is known."""
        if process.id in self._grown:
            return False
        # A shell at the root may be a shim that will exec the program.
        is_root = process.id.pid == self._root and process.name not in LAUNCHERS
        lived_s = now_s - self._first_seen_s.get(process.id, now_s)
        if is_root or process.id in self._probe_labels or lived_s >= YOUNG_S:
            self._grown.add(process.id)
            self._label_of.pop(process.id, None)
            return False
        return True

    def label(self, process: Process) -> str:
        """The label of the process in the recording."""
        label = self._label_of.get(process.id)
        if label is None:
            label = self._label_of[process.id] = self._labels.label(
                process,
                probe_label=self._probe_labels.get(process.id, ""),
                alive=self.alive,
                young=process.id not in self._grown,
            )
        return label

    def forget(self, process: Process) -> None:
        """The process has ended. Helpers are dropped completely: there may be thousands."""
        self._label_of.pop(process.id, None)
        if process.id in self._grown:
            return
        self._known.pop(process.id, None)
        self._first_seen_s.pop(process.id, None)
        self._labels.forget(process.id)
        if self._uninstrumented is not None:
            self._uninstrumented.forget(process)

    def without_probe(self, inside: Collection[ProcessId]) -> tuple[Missing, ...]:
        """Why the other processes lack the probe. inside: those that have it."""
        if self._uninstrumented is None:
            return ()
        return self._uninstrumented.missing(inside, self.label)

    def _change(self, processes: list[Process], now_s: float) -> list[Process]:
        self.alive = frozenset(process.id for process in processes)
        self.pids = frozenset(identity.pid for identity in self.alive)
        self.measured = measurable(processes)
        ended = [process for process in self._followed if process.id not in self.alive]
        self._followed = processes
        for process in processes:
            self._known[process.id] = process
            self._first_seen_s.setdefault(process.id, now_s)
        self._children = [one for one in processes if one.id not in self._grown]
        self._unsettled = list(processes)
        self._label_of.clear()
        return ended

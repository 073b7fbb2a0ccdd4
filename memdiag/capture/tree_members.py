"""Who is in the tree: alive, known from before, too young to be judged, and under which label.

It is asked ten times a second about processes that hardly ever change, so whatever was found out
of one is kept until something about the tree changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memdiag.capture.probelink.uninstrumented import Outsiders
from memdiag.capture.process.labels import LAUNCHERS, Labels
from memdiag.capture.process.tree import Process, ProcessId
from memdiag.values.measurements import YOUNG_S, Missing


class Population:
    """The processes of one tree, and what is remembered of those that are gone.

    alive, pids: those alive at the last `follow`.
    """

    def __init__(self, root: int, *, outsiders: Outsiders | None = None) -> None:
        """outsiders: who finds out why the probe is not in a process."""
        self._root = root
        self._outsiders = outsiders
        self._labels = Labels(root)
        self._known: dict[ProcessId, Process] = {}
        self._first_seen_s: dict[ProcessId, float] = {}
        self._grown: set[ProcessId] = set()
        self._passers: list[Process] = []
        self._followed: list[Process] = []
        self._told: Mapping[ProcessId, str] = {}
        # Of those alive: who may still be too young, and who is still looked at by `outsiders`.
        self._children: list[Process] = []
        self._unsettled: list[Process] = []
        self._label_of: dict[ProcessId, str] = {}
        self.alive: frozenset[ProcessId] = frozenset()
        self.pids: frozenset[int] = frozenset()

    def known(self, identity: ProcessId) -> Process | None:
        """The process, if it was met."""
        return self._known.get(identity)

    def follow(
        self, processes: list[Process], told: Mapping[ProcessId, str], now_s: float
    ) -> Sequence[Process]:
        """Take note of who is alive; those that are no more.

        told: what the probe calls a process.
        """
        ended: Sequence[Process] = ()
        if processes != self._followed:
            ended = self._change(processes, now_s)
        if told != self._told:
            self._told = dict(told)
            self._label_of.clear()
        if self._unsettled and self._outsiders is not None:
            look = self._outsiders.look
            first_s = self._first_seen_s
            self._unsettled = [p for p in self._unsettled if look(p, now_s - first_s[p.id])]
        return ended

    def meet(self, process: Process) -> None:
        """One that only its own events tell of: it may be gone before it is ever seen."""
        self._known[process.id] = process
        self._passers.append(process)

    def passed(self) -> list[Process]:
        """Those that came and went between two ticks, with nothing but their events seen."""
        passers, self._passers = self._passers, []
        return [one for one in passers if one.id not in self.alive]

    def young(self, now_s: float) -> Collection[ProcessId]:
        """Those alive that may be helpers, gone in a moment: they are not judged."""
        if not self._children:
            return ()
        self._children = [one for one in self._children if self.is_young(one, now_s)]
        return {one.id for one in self._children}

    def is_young(self, process: Process, now_s: float) -> bool:
        """Whether nothing but its name is known of the process, and it is new."""
        if process.id in self._grown:
            return False
        # A shell at the root may be a shim that becomes the program in a moment.
        is_root = process.id.pid == self._root and process.name not in LAUNCHERS
        lived_s = now_s - self._first_seen_s.get(process.id, now_s)
        if is_root or process.id in self._told or lived_s >= YOUNG_S:
            self._grown.add(process.id)
            self._label_of.pop(process.id, None)
            return False
        return True

    def label(self, process: Process) -> str:
        """What the process is called in the recording."""
        label = self._label_of.get(process.id)
        if label is None:
            label = self._label_of[process.id] = self._labels.label(
                process,
                told=self._told.get(process.id, ""),
                alive=self.alive,
                young=process.id not in self._grown,
            )
        return label

    def forget(self, process: Process) -> None:
        """The process is gone. Of a helper nothing is kept: thousands may come and go."""
        self._label_of.pop(process.id, None)
        if process.id in self._grown:
            return
        self._known.pop(process.id, None)
        self._first_seen_s.pop(process.id, None)
        self._labels.forget(process.id)
        if self._outsiders is not None:
            self._outsiders.forget(process)

    def without_probe(self, inside: Collection[ProcessId]) -> tuple[Missing, ...]:
        """Why the probe is not in the others. inside: the processes that it is in."""
        return self._outsiders.missing(inside, self.label) if self._outsiders is not None else ()

    def _change(self, processes: list[Process], now_s: float) -> list[Process]:
        self.alive = frozenset(process.id for process in processes)
        self.pids = frozenset(identity.pid for identity in self.alive)
        gone = [process for process in self._followed if process.id not in self.alive]
        self._followed = processes
        for process in processes:
            self._known[process.id] = process
            self._first_seen_s.setdefault(process.id, now_s)
        self._children = [one for one in processes if one.id not in self._grown]
        self._unsettled = list(processes)
        self._label_of.clear()
        return gone

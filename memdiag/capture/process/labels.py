"""Labels of processes in a recording.

The command's main program is "main", a rank that the probe knows "rank 0", any other process its
short name and pid. A label belongs to one process at a time; "main" and ranks pass on to a
successor (a restarted training), which has another pid under the same label in the recording.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memdiag.capture.process.tree import Process, ProcessId
from memdiag.values.measurements import Unavailable

MAIN = "main"
# Programs that only start others. Their child is the training.
_LAUNCHER_NAMES = """
    ash bash busybox conda dash direnv doas env fish ksh make mamba micromamba nice nohup npm npx
    pdm pixi poetry rye sh stdbuf sudo su time timeout uv uvx xargs zsh
"""
LAUNCHERS = frozenset(_LAUNCHER_NAMES.split())
# Programs that pass a command on to a process that is not their child, and how to measure that.
CLIENTS = {
    "docker": "start memdiag in the container (docker run IMAGE memdiag run -- COMMAND), or attach"
    " to its process: memdiag watch --pid $(docker inspect -f '{{.State.Pid}}' NAME)",
    "docker-compose": "start memdiag in the service: command: memdiag run -- COMMAND",
    "kubectl": "start memdiag in the pod: kubectl exec POD -- memdiag run -- COMMAND",
    "nerdctl": "start memdiag in the container: nerdctl run IMAGE memdiag run -- COMMAND",
    "oc": "start memdiag in the pod: oc exec POD -- memdiag run -- COMMAND",
    "srun": "start memdiag on the node: srun memdiag run -- COMMAND",
    "ssh": "start memdiag on the host: ssh HOST memdiag run -- COMMAND",
}
# They print what others write.
_FILTERS = frozenset({"cat", "grep", "tee", "ts"})
_LONGEST_NAME = 24


class Labels:
    """Assigns labels. A process keeps its label while it lives and keeps its name."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._given: dict[ProcessId, str] = {}
        self._basis: dict[ProcessId, tuple[str, str, bool]] = {}
        # The root is a launcher, so that "main" is free for what it starts.
        self._launched = False
        # The last process with each pid, and how many had it. Never dropped, so that a process on a
        # reused pid gets a new label.
        self._turns: dict[int, tuple[ProcessId, int]] = {}

    def label(
        self,
        process: Process,
        *,
        probe_label: str,
        alive: Collection[ProcessId],
        young: bool = False,
    ) -> str:
        """The label of `process`.

        probe_label: its label by the probe, "" for none. alive: the processes that keep their
        labels. young: it may be a short-lived helper, which cannot be "main".
        """
        basis = (process.name, probe_label, young)
        if self._basis.get(process.id) != basis:
            self._basis[process.id] = basis
            self._given[process.id] = self._choose(process, probe_label, alive, young)
        return self._given[process.id]

    def forget(self, process: ProcessId) -> None:
        """Drop a process that has ended, whose label is not needed again."""
        self._given.pop(process, None)
        self._basis.pop(process, None)

    def _choose(
        self, process: Process, probe_label: str, alive: Collection[ProcessId], young: bool
    ) -> str:
        turn = self._turn(process.id)
        others = (one for one in alive if one != process.id)
        taken = {self._given[one] for one in others if one in self._given}
        if probe_label and (name := sanitised(probe_label)) and name != MAIN:
            return _free(name, process, taken)
        if self._is_main(process, taken, young):
            return MAIN
        label = f"{sanitised(process.name) or 'process'} {process.id.pid}"
        return f"{label} ({turn})" if turn > 1 else label

    def _is_main(self, process: Process, taken: Collection[str], young: bool) -> bool:
        if process.id.pid == self._root:
            self._launched = process.name in LAUNCHERS
            return not self._launched
        is_python = process.name.startswith("python")
        return is_python and self._launched and not young and MAIN not in taken

    def _turn(self, process: ProcessId) -> int:
        """1, or more if other processes had the pid before."""
        holder, turn = self._turns.get(process.pid, (process, 1))
        turn += holder != process
        self._turns[process.pid] = (process, turn)
        return turn


def why_not_measured(name: str) -> Unavailable | None:
    """Why the memory of the process with this name is not that of the job; None if it is."""
    remedy = CLIENTS.get(name)
    if remedy is None:
        return None
    reason = f"{name} passes its command on to a process that is not its child"
    return Unavailable(reason=reason, remedy=remedy)


def measurable(processes: Sequence[Process]) -> Sequence[Process]:
    """The processes whose memory is that of the job: not clients and what they have started, nor
    what only starts them.
    """
    clients = {process.id.pid for process in processes if process.name in CLIENTS}
    if not clients:
        return processes
    for process in processes:  # parents come first
        if process.parent in clients:
            clients.add(process.id.pid)
    others = [process for process in processes if process.id.pid not in clients]
    only_starts = LAUNCHERS | _FILTERS
    return [] if all(process.name in only_starts for process in others) else others


def sanitised(name: str) -> str:
    """A name that is safe in every file format, spreadsheet and terminal."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in " ._:/-") else "_" for c in name)
    return safe[:_LONGEST_NAME].strip(" -")


def _free(name: str, process: Process, taken: Collection[str]) -> str:
    return f"{name} ({process.id.pid})" if name in taken or name == "tree" else name

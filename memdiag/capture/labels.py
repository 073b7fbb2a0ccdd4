"""What a process is called in a recording.

The command's main program is "main", a rank that the probe knows "rank 0", everything else its
short name and pid. A label belongs to one process at a time; "main" and ranks pass on to a
successor (a restarted training), which the recording shows as another pid under the same label.
"""

from __future__ import annotations

from collections.abc import Collection

from memdiag.capture.process import Process, ProcessId

MAIN = "main"
# Programs that only start others: beside their child, their memory is of no interest, and it is
# the child that a person means by "my training".
_LAUNCHER_NAMES = """
    ash bash busybox conda dash direnv doas env fish ksh make mamba micromamba nice nohup npm npx
    pdm pixi poetry rye sh stdbuf sudo su time timeout uv uvx xargs zsh
"""
LAUNCHERS = frozenset(_LAUNCHER_NAMES.split())
_LONGEST_NAME = 24


class Labels:
    """Gives labels, the same one for as long as a process lives and keeps its name."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._given: dict[ProcessId, str] = {}
        self._basis: dict[ProcessId, tuple[str, str]] = {}

    def label(self, process: Process, *, told: str, alive: Collection[ProcessId]) -> str:
        """The label of `process`; `told` is what the probe calls it ("" where it says nothing).

        alive: the processes that hold their labels against others.
        """
        basis = (process.name, told)
        if self._basis.get(process.id) != basis:
            self._basis[process.id] = basis
            self._given[process.id] = self._choose(process, told, alive)
        return self._given[process.id]

    def knows(self, process: ProcessId) -> bool:
        """Whether the process was ever given a label."""
        return process in self._given

    def _choose(self, process: Process, told: str, alive: Collection[ProcessId]) -> str:
        taken = {label for holder, label in self._given.items() if holder in alive}
        taken -= {self._given.get(process.id, "")}
        if told and (name := sanitised(told)) and name != MAIN:
            return _free(name, process, taken)
        if self._is_main(process, taken):
            return MAIN
        return self._with_pid(process)

    def _is_main(self, process: Process, taken: Collection[str]) -> bool:
        if process.id.pid == self._root:
            return process.name not in LAUNCHERS
        return MAIN not in taken and process.name.startswith("python") and self._launched

    @property
    def _launched(self) -> bool:
        """The root is a launcher, so that "main" is free for what it starts."""
        return any(
            name in LAUNCHERS for holder, (name, _) in self._basis.items() if self._is_root(holder)
        )

    def _is_root(self, process: ProcessId) -> bool:
        return process.pid == self._root

    def _with_pid(self, process: Process) -> str:
        label = f"{sanitised(process.name) or 'process'} {process.id.pid}"
        earlier = sum(
            holder.pid == process.id.pid and holder != process.id for holder in self._given
        )
        return f"{label} ({earlier + 1})" if earlier else label


def sanitised(name: str) -> str:
    """A name that no file format, spreadsheet or terminal can take for anything else."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in " ._:/-") else "_" for c in name)
    return safe[:_LONGEST_NAME].strip(" -")


def _free(name: str, process: Process, taken: Collection[str]) -> str:
    return f"{name} ({process.id.pid})" if name in taken or name == "tree" else name

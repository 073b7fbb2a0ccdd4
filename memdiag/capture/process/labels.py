"""What a process is called in a recording.

The command's main program is "main", a rank that the probe knows "rank 0", everything else its
short name and pid. A label belongs to one process at a time; "main" and ranks pass on to a
successor (a restarted training), which the recording shows as another pid under the same label.
"""

from __future__ import annotations

from collections.abc import Collection

from memdiag.capture.process.tree import Process, ProcessId

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
        self._basis: dict[ProcessId, tuple[str, str, bool]] = {}
        # The root is a launcher, so that "main" is free for what it starts.
        self._launched = False
        # Who has a pid, and as the how manieth: never forgotten, for the next that gets it.
        self._turns: dict[int, tuple[ProcessId, int]] = {}

    def label(
        self, process: Process, *, told: str, alive: Collection[ProcessId], young: bool = False
    ) -> str:
        """The label of `process`; `told` is what the probe calls it ("" where it says nothing).

        alive: the processes that hold their labels against others.
        young: it may be a helper that is gone in a moment: no candidate for "main".
        """
        basis = (process.name, told, young)
        if self._basis.get(process.id) != basis:
            self._basis[process.id] = basis
            self._given[process.id] = self._choose(process, told, alive, young)
        return self._given[process.id]

    def forget(self, process: ProcessId) -> None:
        """The process is gone, and nobody will ask for its label again."""
        self._given.pop(process, None)
        self._basis.pop(process, None)

    def _choose(
        self, process: Process, told: str, alive: Collection[ProcessId], young: bool
    ) -> str:
        turn = self._turn(process.id)
        others = (one for one in alive if one != process.id)
        taken = {self._given[one] for one in others if one in self._given}
        if told and (name := sanitised(told)) and name != MAIN:
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
        """1, or more where the pid was another process's before."""
        holder, turn = self._turns.get(process.pid, (process, 1))
        turn += holder != process
        self._turns[process.pid] = (process, turn)
        return turn


def sanitised(name: str) -> str:
    """A name that no file format, spreadsheet or terminal can take for anything else."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in " ._:/-") else "_" for c in name)
    return safe[:_LONGEST_NAME].strip(" -")


def _free(name: str, process: Process, taken: Collection[str]) -> str:
    return f"{name} ({process.id.pid})" if name in taken or name == "tree" else name

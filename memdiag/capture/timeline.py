"""Where the job is: the current step and phase of every process, from the probe's events."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.capture.process import ProcessId


@dataclass(slots=True)
class _Position:
    steps: int = 0
    step: int | None = None
    phase: str = ""


class Timeline:
    """The current step and phase of each process that sends them, and of the job.

    The job's are those of the process with most steps so far.
    """

    def __init__(self) -> None:
        self._positions: dict[ProcessId, _Position] = {}
        self._leader = _Position()

    def move(self, process: ProcessId, *, step: int | None, phase: str) -> None:
        """`process` is at `step` (None: before its first) and in `phase` from now on."""
        position = self._positions.setdefault(process, _Position())
        position.steps += step is not None and step != position.step
        position.step = step
        position.phase = phase
        if position.steps > self._leader.steps:
            self._leader = position

    def phase(self, process: ProcessId) -> str:
        """The phase of this very process, "" where it sent none."""
        position = self._positions.get(process)
        return position.phase if position is not None else ""

    def where(self, process: ProcessId) -> tuple[int | None, str]:
        """Step and phase of a process; the job's, where it has none of its own."""
        own = self._positions.get(process, self._leader)
        if own.step is None:
            return self._leader.step, own.phase or self._leader.phase
        return own.step, own.phase

    def forget(self, process: ProcessId) -> None:
        """`process` ended. The job's step stays until another process starts to count."""
        position = self._positions.pop(process, None)
        if position is not None:
            position.phase = ""
            position.steps = 0

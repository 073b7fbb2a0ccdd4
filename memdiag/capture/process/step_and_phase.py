"""The current step and phase of the job and of each process, from the best source."""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass

from memdiag.capture.process.tree import ProcessId

# Wait for the steps of a log with patterns of the user while the probe counts this many. Heuristic,
# the same number as in the probe for programs that use tags.
_GRACE_STEPS = 200


class Origin(enum.IntEnum):
    """Sources of steps and phases. The higher one has priority."""

    NONE = 0
    LOOP = 1  # iterations of a loop of the program, counted by the probe
    LOGGER = 2  # a log's lines, read by the patterns of common loggers
    PROBE = 3  # hooks in the training's library
    LOG = 4  # a log's lines, read by patterns of the user's
    PROGRAM = 5  # tags in the program


@dataclass(slots=True)
class _Position:
    steps: int = 0
    step: int | None = None
    phase: str = ""
    step_by: Origin = Origin.NONE
    phase_by: Origin = Origin.NONE


class Timeline:
    """The current step and phase of each process that sends them, and of the job.

    The job has those of the process with most steps so far; processes whose steps are only
    iterations of a loop come last. A log is about the job.
    """

    def __init__(self, *, awaits_log_steps: bool = False) -> None:
        """awaits_log_steps: a log is expected to have the steps, so those of the probe may wait."""
        self._positions: dict[ProcessId, _Position] = {}
        self._leader = _Position()
        self._log = _Position()
        self._awaits_log_steps = awaits_log_steps
        # Cache of `where` since the last change; under None for processes without a position.
        self._found: dict[ProcessId | None, tuple[int | None, str]] = {}

    def move(
        self,
        process: ProcessId,
        *,
        step: int | None,
        phase: str,
        step_by: Origin = Origin.PROBE,
        phase_by: Origin = Origin.PROBE,
    ) -> None:
        """`process` is at `step` (None: before its first) and in `phase` from now on."""
        self._found.clear()
        position = self._positions.setdefault(process, _Position())
        position.steps += step is not None and step != position.step
        position.step = step
        position.phase = phase
        if step is not None:
            position.step_by = max(position.step_by, step_by)
        if phase:
            position.phase_by = max(position.phase_by, phase_by)
        if _rank(position) > _rank(self._leader):
            self._leader = position

    def log_step(self, step: int, by: Origin) -> None:
        """The job is at `step` according to a log."""
        self._found.clear()
        self._log.step, self._log.step_by = step, by

    def log_phase(self, phase: str, by: Origin) -> None:
        """The job is in `phase` ("" for none) according to a log."""
        self._found.clear()
        self._log.phase, self._log.phase_by = phase, by

    def phase(self, process: ProcessId) -> str:
        """The phase of this process itself, "" if it has sent none."""
        position = self._positions.get(process)
        return position.phase if position is not None else ""

    def where(self, process: ProcessId) -> tuple[int | None, str]:
        """Step and phase of a process, or of the job if it has none of its own."""
        owner = process if process in self._positions else None
        found = self._found.get(owner)
        if found is None:
            found = self._found[owner] = self._where(process)
        return found

    def _where(self, process: ProcessId) -> tuple[int | None, str]:
        own = self._positions.get(process, self._leader)
        followed = (own,) if own.step is not None else (own, self._leader)
        step, phase = own.step, own.phase
        if own.step is None:
            step, phase = self._leader.step, own.phase or self._leader.phase
        if self._log.step_by > max(position.step_by for position in followed):
            step = self._log.step
        elif self._waits(followed):
            step = None
        if self._log.phase_by > max(position.phase_by for position in followed):
            phase = self._log.phase
        return step, phase

    def forget(self, process: ProcessId) -> None:
        """`process` ended. The job's step stays until another process starts to count."""
        self._found.clear()
        position = self._positions.pop(process, None)
        if position is not None:
            position.phase = ""
            position.steps = 0

    def _waits(self, followed: Collection[_Position]) -> bool:
        """Return True to wait for the log, which is better than the few steps of the probe."""
        if not self._awaits_log_steps or self._log.step_by is not Origin.NONE:
            return False
        counted = max(position.steps for position in followed)
        return counted <= _GRACE_STEPS and all(p.step_by <= Origin.PROBE for p in followed)


def _rank(position: _Position) -> tuple[bool, int]:
    """Order of the processes: steps of a better source than a loop first, then most steps."""
    return position.steps > 0 and position.step_by > Origin.LOOP, position.steps

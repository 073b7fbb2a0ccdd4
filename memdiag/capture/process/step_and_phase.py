"""Where the job is: the current step and phase of every process, by the best that says so."""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass

from memdiag.capture.process.tree import ProcessId

# A log whose lines the user described is waited for while the probe counts so many steps; one
# that says nothing until then will not. Chosen, as the probe does with programs that have tags.
_GRACE_STEPS = 200


class Origin(enum.IntEnum):
    """Who says where the job is. The higher one is believed."""

    NOBODY = 0
    LOOP = 1  # a loop of the program, whose iterations are counted
    LOGGER = 2  # a log's lines, read by the patterns of common loggers
    PROBE = 3  # hooks in the training's library
    LOG = 4  # a log's lines, read by patterns of the user's
    PROGRAM = 5  # tags in the program


@dataclass(slots=True)
class _Position:
    steps: int = 0
    step: int | None = None
    phase: str = ""
    step_by: Origin = Origin.NOBODY
    phase_by: Origin = Origin.NOBODY


class Timeline:
    """The current step and phase of each process that sends them, and of the job.

    The job's are those of the process with most steps so far, where some are told before all that
    are iterations of a loop. What a log says is the job's.
    """

    def __init__(self, *, awaits_log_steps: bool = False) -> None:
        """awaits_log_steps: the user says that a log tells the steps; the probe may wait."""
        self._positions: dict[ProcessId, _Position] = {}
        self._leader = _Position()
        self._log = _Position()
        self._awaits_log_steps = awaits_log_steps
        # What `where` found since anybody moved; under None of those without a position.
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
        """A log says that the job is at `step`."""
        self._found.clear()
        self._log.step, self._log.step_by = step, by

    def log_phase(self, phase: str, by: Origin) -> None:
        """A log says that the job is in `phase`, "" for none."""
        self._found.clear()
        self._log.phase, self._log.phase_by = phase, by

    def phase(self, process: ProcessId) -> str:
        """The phase of this very process, "" where it sent none."""
        position = self._positions.get(process)
        return position.phase if position is not None else ""

    def where(self, process: ProcessId) -> tuple[int | None, str]:
        """Step and phase of a process; the job's, where it has none of its own."""
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
        """For the log, which is better than the little that the probe has counted."""
        if not self._awaits_log_steps or self._log.step_by is not Origin.NOBODY:
            return False
        counted = max(position.steps for position in followed)
        return counted <= _GRACE_STEPS and all(p.step_by <= Origin.PROBE for p in followed)


def _rank(position: _Position) -> tuple[bool, int]:
    return position.steps > 0 and position.step_by > Origin.LOOP, position.steps

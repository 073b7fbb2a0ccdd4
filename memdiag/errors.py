"""What can go wrong, and the exit code that says so.

Every error says what happened, where, and what to try. They are raised where the cause is known
and caught once, in `cli`. An exception that is not one of these is a bug and keeps its traceback.
"""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """memdiag's own exit codes (README, "Exit codes")."""

    NO_LEAK = 0
    LEAK = 1
    USAGE = 2
    INCONCLUSIVE = 3
    CANNOT_MEASURE = 4
    CANNOT_EXECUTE = 126
    NOT_FOUND = 127
    INTERRUPTED = 130


class MemdiagError(Exception):
    """Base of all expected errors: one sentence of what and where, one of what to try."""

    exit_code: Exit = Exit.USAGE

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(MemdiagError):
    """Options that contradict each other or make no sense."""


class UnreadableInput(MemdiagError):
    """A recording or log that cannot be read. `source` names the file, `line` its line."""

    def __init__(
        self, message: str, *, source: str = "", line: int | None = None, remedy: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.source = source
        self.line = line


class OutputExists(MemdiagError):
    """An output file that is there already and was not to be overwritten."""


class CannotStart(MemdiagError):
    """The command could not be started."""

    exit_code = Exit.NOT_FOUND

    def __init__(self, message: str, *, remedy: str = "", found: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.exit_code = Exit.CANNOT_EXECUTE if found else Exit.NOT_FOUND


class CannotWatch(MemdiagError):
    """The process to be watched is not there, or not ours to watch."""

    exit_code = Exit.CANNOT_MEASURE


class CannotMeasure(MemdiagError):
    """memdiag itself failed to measure."""

    exit_code = Exit.CANNOT_MEASURE

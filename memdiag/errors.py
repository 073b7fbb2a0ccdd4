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
    STOPPED = 5
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

    def __str__(self) -> str:
        """As the command line prints it."""
        return f"{self.message}\n  hint: {self.remedy}" if self.remedy else self.message


class UsageError(MemdiagError):
    """Options that contradict each other or make no sense."""


class ReadError(MemdiagError):
    """A recording or log that cannot be read. `source` names the file, `line` its line."""

    def __init__(
        self, message: str, *, source: str = "", line: int | None = None, remedy: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.source = source
        self.line = line

    def __str__(self) -> str:
        source = self.source if self.source.isprintable() else ascii(self.source)
        line = f"line {self.line}: " if self.line is not None else ""
        return f"{source}: {line}{super().__str__()}" if source else super().__str__()


class TooShort(ReadError):
    """A recording or log with too few rows to say anything about growth."""


class OutputExists(MemdiagError):
    """An output file that is there already and was not to be overwritten."""


class CaptureError(MemdiagError):
    """A program that cannot be started, or memory that cannot be measured."""

    exit_code = Exit.CANNOT_MEASURE


class CannotStart(CaptureError):
    """The command could not be started."""

    exit_code = Exit.NOT_FOUND

    def __init__(self, message: str, *, remedy: str = "", found: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.exit_code = Exit.CANNOT_EXECUTE if found else Exit.NOT_FOUND


class CannotWatch(CaptureError):
    """The process to be watched is not there, or not ours to watch."""


class CannotMeasure(CaptureError):
    """memdiag itself failed to measure."""


class LeakError(MemdiagError, AssertionError):
    """Memory leaks, where it was asserted that it does not (`Diagnosis.raise_for_leak`)."""

    exit_code = Exit.LEAK

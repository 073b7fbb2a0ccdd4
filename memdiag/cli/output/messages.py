"""Messages on stderr. A message that cannot be written is lost: no decision of memdiag, least of
all the exit code, depends on it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import sys
import traceback
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from memdiag.errors import MemdiagError, ReadError
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.values.findings import Failure

STDERR = 2
# How long a line waits for a slow reader. Heuristic.
_PATIENCE_S = 1.0
_FAILURES = 10
_WITH_HINTS = 2
_LINE = re.compile(r"(?:line (\d+): )?(.*)", re.S)


def say(message: str) -> None:
    """One line on stderr."""
    print(f"memdiag: {message}", file=sys.stderr, flush=True)


def complain(message: str, remedy: str = "", *, level: str = "error") -> None:
    """What failed and where, and what to type or do instead, a line for each hint.

    level: `error`, or `warning` if memdiag continues.
    """
    color = {"error": "31", "warning": "35"}[level]
    lines = [f"memdiag: {_styled(f'{level}:', f'1;{color}')} {printable(message)}"]
    lines += [
        f"  {_styled('hint:', '36')} {printable(hint)}" for hint in remedy.split("\n") if hint
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)


def warn(suspicions: Iterable[tuple[str, str]]) -> None:
    """A warning with its hint for each."""
    for message, remedy in suspicions:
        complain(message, remedy, level="warning")


def complain_of_failures(failures: Sequence[Failure]) -> None:
    """An error for each source that could not be read; beyond a few, they are counted."""
    for failure in failures[:_FAILURES]:
        line, message = _LINE.match(failure.message).groups()  # type: ignore[union-attr]
        where = failure.source + (f":{line}" if line else "")
        complain(_at(message, where), failure.remedy if len(failures) <= _WITH_HINTS else "")
    if len(failures) > _FAILURES:
        complain(f"{len(failures) - _FAILURES:,} more files could not be read")


def located(error: MemdiagError) -> str:
    """The message of an error with the file and the line that it is about."""
    if not isinstance(error, ReadError) or not error.source:
        return error.message
    return _at(error.message, error.source + (f":{error.line}" if error.line else ""))


def _at(message: str, where: str) -> str:
    message = message.removeprefix(f"{where}: ")
    message = f"the file {message[3:]}" if message.startswith("it ") else message
    return f"{message} ({where})"


def _styled(word: str, codes: str) -> str:
    """The word in color, if stderr is a terminal that has colors."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return word if is_plain or not sys.stderr.isatty() else f"\033[{codes}m{word}\033[0m"


def in_words(error: Exception) -> str:
    """What went wrong, in one line that is safe to print."""
    if isinstance(error, MemdiagError):
        return printable(error.message)
    if isinstance(error, OSError) and error.strerror:
        name = f" ({printable(str(error.filename))})" if error.filename else ""
        return f"{error.strerror}{name}"
    if isinstance(error, MemoryError):
        return "no memory is left for memdiag"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "no more threads can be started (ulimit -u, or the pids limit of the container)"
    where = traceback.extract_tb(error.__traceback__)[-1]
    shown = printable(f"{type(error).__name__} in {where.name}:{where.lineno}: {error}")
    return f"{shown} (a bug in memdiag)"


def unfailing(descriptor: int, encoding: str) -> TextIO:
    """A stream that writes there line by line and never fails."""
    raw = _Unfailing(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=True
    )


class _Unfailing(io.FileIO):
    def write(self, data: Any, /) -> int:
        with contextlib.suppress(OSError):
            for _ in range(2):
                written = super().write(data)
                if written is not None:
                    return written
                select.select([], [self], [], _PATIENCE_S)  # the target has made it non-blocking
        return len(data)

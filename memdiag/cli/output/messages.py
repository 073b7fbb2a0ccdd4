"""Messages on stderr. A message that cannot be written is lost: no decision of memdiag, least of
all the exit code, depends on it.
"""

from __future__ import annotations

import contextlib
import io
import select
import sys
import traceback
from typing import Any, TextIO

from memdiag.errors import MemdiagError
from memdiag.values.sanitize import printable

STDERR = 2
# How long a line waits for a slow reader. Heuristic.
_PATIENCE_S = 1.0


def say(message: str) -> None:
    """One line on stderr."""
    print(f"memdiag: {message}", file=sys.stderr, flush=True)


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

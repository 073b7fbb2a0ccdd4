"""stderr, which nobody has to be able to write to: what cannot be written is lost.

Nothing that memdiag decides depends on it, least of all the exit code.
"""

from __future__ import annotations

import contextlib
import io
import select
from typing import Any, TextIO

# How long a line waits for a reader that is slower than we are. Heuristic.
_PATIENCE_S = 1.0


def on(descriptor: int, encoding: str) -> TextIO:
    """A stream that writes there line by line, and whose writing never fails."""
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

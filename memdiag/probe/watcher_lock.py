"""Checks if the memdiag that attached the probe to this process still runs.

The probe detaches when this watcher exits for any reason: the watcher holds a lock on a file in
the channel, which the system releases at its exit.
"""

from __future__ import annotations

import os
from time import monotonic

from .guard import ours
from .ring_format import WATCHER

_EVERY_S = 1.0


def find_watcher(directory: str) -> Watcher | None:
    """The watcher of a channel; None if the probes do not depend on one."""
    path = os.path.join(directory, WATCHER)  # noqa: PTH118
    return Watcher(path) if os.path.exists(path) else None  # noqa: PTH110


class Watcher:
    """Checks the lock at most once a second."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._next_s = monotonic() + _EVERY_S

    def is_gone(self) -> bool:
        """Return True if the watcher has exited."""
        now_s = monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + _EVERY_S
        return self._is_free()

    def _is_free(self) -> bool:
        from fcntl import LOCK_NB, LOCK_SH, flock

        try:
            # Non-blocking: the program must not wait, whatever kind of file this is.
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            fd = os.open(self._path, flags)
        except ours(FileNotFoundError):
            return True
        except ours(OSError):
            return False  # no descriptor left: try later
        try:
            flock(fd, LOCK_SH | LOCK_NB)
            return True
        except ours(OSError):
            return False
        finally:
            os.close(fd)

"""Whether the one who let the probe into a running process is still there.

Such a probe is to leave with its watcher, however that ends: it holds a lock on a file in the
channel, which the system gives up for it.
"""

from __future__ import annotations

import os
from time import monotonic

from .layout import WATCHER

_EVERY_S = 1.0


def watcher_of(directory: str) -> Watcher | None:
    """The watcher that the probes of a channel leave with; None where they are to stay."""
    path = os.path.join(directory, WATCHER)  # noqa: PTH118
    return Watcher(path) if os.path.exists(path) else None  # noqa: PTH110


class Watcher:
    """Looks at the lock once a second at most."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._next_s = monotonic() + _EVERY_S

    def gone(self) -> bool:
        """Whether nobody watches any more."""
        now_s = monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + _EVERY_S
        return self._is_free()

    def _is_free(self) -> bool:
        from fcntl import LOCK_NB, LOCK_SH, flock

        try:
            # Non-blocking: whatever lies there, the program must not wait for it.
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            fd = os.open(self._path, flags)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # no descriptor to spare: ask later
        try:
            flock(fd, LOCK_SH | LOCK_NB)
            return True
        except OSError:
            return False
        finally:
            os.close(fd)

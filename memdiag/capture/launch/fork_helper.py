"""Small processes of memdiag's own beside the target: forked early, holding nothing but what they
were given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path


def forked(life: Callable[[], None], *, keeps: Collection[int], name: str) -> int:
    """Fork a process that does `life` and ends; its pid. Raises OSError where none can be made.

    keeps: the descriptors it keeps; all others are closed in it. Signals stay blocked as they are
    here. To be called before there is any thread.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        keep_only(keeps, name)
        life()
    finally:
        os._exit(0)


def keep_only(descriptors: Collection[int], name: str) -> None:
    """Close all others, hold no directory, and be called `name` in lists of processes."""
    os.chdir("/")
    if Path("/proc/self/comm").exists():
        Path("/proc/self/comm").write_text(name)
    below = 0
    for descriptor in sorted(descriptors):
        os.closerange(below, descriptor)
        below = descriptor + 1
    os.closerange(below, os.sysconf("SC_OPEN_MAX"))

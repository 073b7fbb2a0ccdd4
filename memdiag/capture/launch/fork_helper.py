"""Forks small helper processes of memdiag, which keep only the descriptors they need."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path


def forked(life: Callable[[], None], *, keeps: Collection[int], name: str) -> int:
    """Fork a process that calls `life` and exits; returns its pid. Raises OSError.

    keeps: the descriptors that stay open in it. It inherits the signal mask. Call this before any
    thread is started.
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
    """Close all other descriptors, leave the working directory, and set the process's name."""
    os.chdir("/")
    if Path("/proc/self/comm").exists():
        Path("/proc/self/comm").write_text(name)
    below = 0
    for descriptor in sorted(descriptors):
        os.closerange(below, descriptor)
        below = descriptor + 1
    os.closerange(below, os.sysconf("SC_OPEN_MAX"))

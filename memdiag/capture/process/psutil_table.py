"""The process table of systems without Linux's /proc, through psutil."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import psutil

from memdiag.capture.process.tree import Newborn, Process, ProcessId
from memdiag.values.measurements import Unavailable

_NO_PSS = Unavailable(reason="only Linux counts PSS")
_NO_SWAP = Unavailable(reason="this system does not report swap per process")

_NO_MEMORY = Unavailable(
    reason="this system does not allow memdiag to read the process's memory",
    remedy="run memdiag as the user that owns the process, or as root",
)
_NO_MAP = Unavailable(reason="this system does not allow memdiag to read the memory map")


class PsutilTable:
    """`ProcessTable` over psutil, for every system; slower than /proc."""

    def __init__(self) -> None:
        self._handles: dict[ProcessId, psutil.Process] = {}

    def find(self, pid: int) -> Process | None:
        """The live process on `pid`."""
        try:
            handle = psutil.Process(pid)
            if handle.status() == psutil.STATUS_ZOMBIE:
                return None
            identity = ProcessId(pid, handle.create_time())
            name, parent = handle.name(), handle.ppid()
        except psutil.Error:
            return None
        self._handles[identity] = handle
        return Process(id=identity, name=name, parent=parent)

    def children(self, pid: int) -> Iterable[int]:
        """Pids of the children of `pid`."""
        try:
            return [child.pid for child in psutil.Process(pid).children()]
        except psutil.Error:
            return []

    def resident_bytes(self, process: ProcessId) -> int | Unavailable | None:
        """Resident bytes."""
        return self._read(process, lambda handle: handle.memory_info().rss, _NO_MEMORY)

    def details(self, process: ProcessId) -> Mapping[str, int | Unavailable] | None:
        """USS if psutil supports it."""
        uss = self._read(process, lambda handle: handle.memory_full_info().uss, _NO_MAP)
        if uss is None:
            return None
        return {"uss_bytes": uss, "pss_bytes": _NO_PSS, "swap_bytes": _NO_SWAP}

    def forget(self, process: ProcessId) -> None:
        """Drop the handle."""
        self._handles.pop(process, None)

    def births(self) -> int | None:
        """Unknown here."""
        return None

    def born_to(self, parents: Collection[int], since: int, until: int) -> Newborn | None:
        """Unknown here."""
        return None

    def close(self) -> None:
        """Drop all handles."""
        self._handles.clear()

    def _read(
        self, process: ProcessId, read: Callable[[psutil.Process], int], denied: Unavailable
    ) -> int | Unavailable | None:
        handle = self._handles.get(process)
        if handle is None or not handle.is_running():  # compares the start time too
            return None
        try:
            return int(read(handle))
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            return None
        except (psutil.AccessDenied, AttributeError):
            return denied

"""The process table of Linux, read from /proc.

A descriptor of each process's `statm` stays open: a read takes 2 us, and fails once the process has
ended, even if its pid was reused. Everything read by path is confirmed by a read through that
descriptor.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memdiag.capture.process.tree import Newborn, Process, ProcessId
from memdiag.values.measurements import Unavailable

# The most descriptors that stay open. The usual limit is 1024, and raising it would affect the
# target. Further processes are read by path.
KEPT_DESCRIPTORS = 400
# Up to this many new pids are checked for their parent (15 us each); else the tree is searched.
_ASKED_AT_MOST = 64

_PROTECTED = Unavailable(
    reason="the kernel does not allow memdiag to read this process's memory map (it belongs to "
    "another user, changed its user, or protects itself)",
    remedy="run memdiag as the user that owns the process, or as root",
)
_NO_ROLLUP = Unavailable(
    reason="this kernel has no /proc/PID/smaps_rollup (Linux before 4.14)",
    remedy="use a newer kernel",
)
_HIDDEN = Unavailable(
    reason="/proc hides this process from memdiag (mounted with hidepid)",
    remedy="run memdiag as the user that owns the process, or as root",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """Fields of /proc/PID/stat: name, state letter, parent, kernel flags, start in ticks."""

    name: str
    state: str
    parent: int
    flags: int
    started: int

    @property
    def dead(self) -> bool:
        """Return True for a process that has ended: a zombie, or about to be one."""
        return self.state in "ZXx"

    @property
    def kernel_thread(self) -> bool:
        """Return True for a kernel thread (PF_KTHREAD)."""
        return bool(self.flags & 0x00200000)


def parse_stat(raw: bytes) -> Stat:
    """Parse /proc/PID/stat. The name may contain spaces, parentheses and newlines."""
    head, _, tail = raw.rpartition(b")")
    fields = tail.split()
    return Stat(
        name=head.partition(b"(")[2].decode("utf-8", "replace"),
        state=fields[0].decode(),
        parent=int(fields[1]),
        flags=int(fields[6]),
        started=int(fields[19]),
    )


def parse_rollup(raw: bytes) -> dict[str, int | Unavailable]:
    """Parse USS, PSS and swap in bytes from /proc/PID/smaps_rollup (lines in kB)."""
    sums = {"uss_bytes": 0, "pss_bytes": 0, "swap_bytes": 0}
    for line in raw.splitlines():
        key, _, rest = line.partition(b":")
        metric = _ROLLUP.get(key)
        if metric is not None:
            sums[metric] += int(rest.split()[0]) * 1024
    return dict(sums)


_ROLLUP = {
    b"Private_Clean": "uss_bytes",
    b"Private_Dirty": "uss_bytes",
    b"Private_Hugetlb": "uss_bytes",
    b"Pss": "pss_bytes",
    b"Swap": "swap_bytes",
}


class ProcTable:
    """`ProcessTable` for Linux. `proc` is the mount point of procfs."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = str(proc)
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._statm: dict[ProcessId, int] = {}
        self._loadavg = self._open("loadavg")

    def stat(self, pid: int) -> Stat | None:
        """/proc/PID/stat, also of zombies; None if there is no such process."""
        raw = self._read(f"{pid}/stat")
        return parse_stat(raw) if raw else None

    def find(self, pid: int) -> Process | None:
        """The live process on `pid`."""
        stat = self.stat(pid)
        if stat is None or stat.dead:
            return None
        process = Process(id=ProcessId(pid, stat.started), name=stat.name, parent=stat.parent)
        if process.id not in self._statm and len(self._statm) < KEPT_DESCRIPTORS:
            self._keep(process.id)
        return process

    def children(self, pid: int) -> Iterable[int]:
        """Pids of the children of all threads of `pid`."""
        found: list[int] = []
        try:
            threads = os.listdir(f"{self._proc}/{pid}/task")  # noqa: PTH208 - half of the cost
        except OSError:
            return found
        for thread in threads:
            raw = self._read(f"{pid}/task/{thread}/children")
            if raw:
                found += map(int, raw.split())
        return found

    def resident_bytes(self, process: ProcessId) -> int | Unavailable | None:
        """Resident bytes of the second field of `statm`."""
        descriptor = self._statm.get(process)
        if descriptor is None:
            return self._resident_by_path(process)
        try:
            raw = os.pread(descriptor, 128, 0)
        except OSError:
            return None
        return self._resident(raw)

    def details(self, process: ProcessId) -> Mapping[str, int | Unavailable] | None:
        """USS, PSS and swap of `smaps_rollup`."""
        failure: Unavailable | None = None
        raw = b""
        try:
            raw = _content(f"{self._proc}/{process.pid}/smaps_rollup")
        except PermissionError:
            failure = _PROTECTED
        except FileNotFoundError:
            failure = _NO_ROLLUP
        except OSError:
            return None
        if self.resident_bytes(process) is None:
            return None
        if failure is not None:
            return {"uss_bytes": failure, "pss_bytes": failure, "swap_bytes": failure}
        return parse_rollup(raw) if raw else None

    def forget(self, process: ProcessId) -> None:
        """Close the descriptor kept for `process`."""
        descriptor = self._statm.pop(process, None)
        if descriptor is not None:
            os.close(descriptor)

    def births(self) -> int | None:
        """The last assigned pid, from /proc/loadavg: while it stays, no search is needed."""
        if self._loadavg is None:
            return None
        try:
            return int(os.pread(self._loadavg, 128, 0).split()[-1])
        except (OSError, ValueError, IndexError):
            return None

    def born_to(self, parents: Collection[int], since: int, until: int) -> Newborn | None:
        """Check all pids between the two numbers: pids are assigned in order, also to threads."""
        if not 0 < until - since <= _ASKED_AT_MOST:
            return None
        family, found, unseen = set(parents), [], []
        for pid in range(since + 1, until + 1):
            stat = self.stat(pid)
            if stat is None:
                unseen.append(pid)
            elif not stat.dead and stat.parent in family and not self._is_thread(pid):
                family.add(pid)
                found.append(pid)
        return Newborn(found, unseen)

    def close(self) -> None:
        """Close every descriptor."""
        for process in tuple(self._statm):
            self.forget(process)
        if self._loadavg is not None:
            os.close(self._loadavg)
            self._loadavg = None

    def _is_thread(self, pid: int) -> bool:
        """Return True for a thread that is not a process; /proc has it under its number too."""
        return b"\nTgid:\t%d\n" % pid not in (self._read(f"{pid}/status") or b"")

    def _keep(self, process: ProcessId) -> None:
        descriptor = self._open(f"{process.pid}/statm")
        if descriptor is None:
            return
        stat = self.stat(process.pid)
        if stat is None or stat.started != process.started:
            os.close(descriptor)  # the pid was reused between the two reads
            return
        self._statm[process] = descriptor

    def _resident_by_path(self, process: ProcessId) -> int | Unavailable | None:
        raw = self._read(f"{process.pid}/statm")
        stat = self.stat(process.pid)
        if stat is None or stat.dead or stat.started != process.started:
            return None
        return self._resident(raw) if raw else _HIDDEN

    def _resident(self, raw: bytes) -> int | None:
        pages = raw.split(b" ", 2)
        if len(pages) < 2 or pages[0] == b"0":
            return None  # a zombie has released its address space
        return int(pages[1]) * self._page_bytes

    def _open(self, name: str) -> int | None:
        try:
            return os.open(f"{self._proc}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None

    def _read(self, name: str) -> bytes | None:
        try:
            return _content(f"{self._proc}/{name}")
        except OSError:
            return None


def _content(path: str) -> bytes:
    """The content of a small file of /proc, which one read returns completely."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)

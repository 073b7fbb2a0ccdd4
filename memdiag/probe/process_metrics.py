"""Metrics of this process's memory that take microseconds to read, each within a budget."""

from __future__ import annotations

import gc
import os
import sys
from time import monotonic, thread_time

from .guard import ours
from .ring_format import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# Default share of the time for one metric, at steps and again at phases. Heuristic. The cost of
# `mallinfo2` grows with the number of free chunks: 1 us in a new process, 70 ms for 500,000.
SHARE = 0.001
# One reading that was interrupted must not delay the next for long: the estimated cost grows at
# most by this factor, plus this time, from one call to the next.
_GROWTH, _GRACE_S = 4.0, 20e-6
# Readings in a row at phases that begin and end shortly after each other. Heuristic.
_BURST = 8
# A metric with a larger first share is read at intervals of at most this part of the time since its
# first reading, until its usual share allows more: eleven readings in the last half of a run,
# whatever its length. Heuristic.
_PART_OF_AGE = 1 / 16
# Readings further apart than this leave gaps in a recording. Heuristic.
_SELDOM_S = 4.0
_LIBRARIES_WITH_MALLOC = (b"jemalloc", b"tcmalloc", b"mimalloc", b"libhoard", b"libsnmalloc")
# Below malloc's threshold for mapping: freeing a mapped block would raise that threshold.
_SELF_TEST_BYTES = 1 << 16


class Budgeted:
    """A reading that takes at most a share of the time: the next one waits for cost / share.

    The cost is CPU time: on a busy machine the clock also counts other programs. say: called once,
    with a sentence, if readings are rare. burst: this many readings may follow each other at once
    after a pause that pays for them. credit_s: the time that readings may take beyond their share,
    available at the start. first_share: the share at first, if it is larger. It falls to the usual
    one as the run gets longer, so that the readings are spread over the run whatever its length.
    """

    def __init__(
        self,
        read: Callable[[], Any],
        say: Callable[[str], None],
        *,
        burst: int = 0,
        credit_s: float = 0.0,
        share: float = SHARE,
        first_share: float = 0.0,
    ) -> None:
        self._read = read
        self._burst = burst
        self._ahead_s = 0.0 if first_share else credit_s / share
        self._credit_s = self._most_credit_s = credit_s if first_share else 0.0
        self._share = share
        self._first_share = first_share
        self._began_s = self._charged_s = -1.0
        self._say = say
        self._said = False
        self.cost_s = 0.0  # what the next reading is expected to take
        self.not_before_s = 0.0
        self.took_s = 0.0  # by the last call

    def __call__(self) -> Any:
        """The reading, or ABSENT if it is too early for one."""
        if monotonic() < self.not_before_s:
            self.took_s = 0.0
            return ABSENT
        began_s = thread_time()
        value = self._read()
        self.charge(thread_time() - began_s, monotonic())
        return value

    def charge(self, took_s: float, now_s: float) -> None:
        """Account for a reading that has taken `took_s`."""
        self.took_s = took_s
        self.cost_s = min(took_s, _GROWTH * self.cost_s + _GRACE_S)
        wait_s = self.cost_s / self._share
        if self._first_share:
            if self._began_s < 0:
                self._began_s = self._charged_s = now_s
            # A pause pays for readings without a wait, as the start does.
            paused_s = max(0.0, now_s - max(self._charged_s, self.not_before_s))
            saved_s = self._credit_s + paused_s * self._share
            self._credit_s = min(self._most_credit_s, saved_s)
            self._charged_s = now_s
            soon_s = max(self.cost_s / self._first_share, (now_s - self._began_s) * _PART_OF_AGE)
            wait_s = min(wait_s, soon_s)
        if self._credit_s > 0:
            self._credit_s -= self.cost_s
            return
        rested_s = max(self._burst * wait_s, self._ahead_s)
        self.not_before_s = wait_s + max(self.not_before_s, now_s - rested_s)
        if wait_s > _SELDOM_S and not self._said:
            self._said = True
            took = f"one reading takes {self.cost_s * 1e3:.3g} ms in this process"
            self._say(f"{took}, so it is read at most every {wait_s:.2g} s")


class BudgetedMetric:
    """A reading with one budget for steps and one for the beginning and end of phases.

    Evaluations are rare and short. With one budget, the reading that shows what an evaluation has
    retained would often be skipped.
    """

    def __init__(
        self,
        read: Callable[[], Any],
        say: Callable[[str], None],
        *,
        share: float = SHARE,
        credit_s: float = 0.0,
        first_share: float = 0.0,
        burst_at_phases: int = _BURST,
    ) -> None:
        """share, credit_s, first_share: at steps."""
        self.at_steps = Budgeted(read, say, share=share, credit_s=credit_s, first_share=first_share)
        self.at_phases = Budgeted(read, lambda _: None, burst=burst_at_phases)


class ResidentSize:
    """The resident set in bytes, read through a descriptor that stays open.

    Programs may close descriptors of others, and then open files of their own on the same number.
    So the descriptor has a high number, its content is validated, and its identity is checked
    regularly.
    """

    _CHECK_EVERY = 256
    _LIVES = 8

    def __init__(self) -> None:
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._fd = -1
        self._identity = (0, 0)
        self._lives = self._LIVES
        self._until_check = 0

    def __call__(self) -> int:
        """Bytes, or ABSENT if they cannot be read."""
        try:
            if self._until_check <= 0:
                self._check()
            self._until_check -= 1
            return int(self._fields()[1]) * self._page_bytes
        except ours(OSError, ValueError, IndexError):
            self._until_check = 0
            return ABSENT

    def forget(self) -> None:
        """Close the descriptor, which in a forked child belongs to the parent process."""
        if self._fd >= 0 and self._is_ours():
            os.close(self._fd)
        self._fd, self._until_check, self._lives = -1, 0, self._LIVES

    def _fields(self) -> list[bytes]:
        fields = os.pread(self._fd, 128, 0).split(b" ")
        if len(fields) != 7:
            raise ValueError
        return fields

    def _check(self) -> None:
        if self._fd < 0 or not self._is_ours():
            if self._lives <= 0:
                raise OSError
            self._lives -= 1
            self._fd = -1
            self._fd = _high(os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC))
            self._identity = self._identify()
        self._until_check = self._CHECK_EVERY

    def _is_ours(self) -> bool:
        try:
            return self._identify() == self._identity
        except ours(OSError):
            return False

    def _identify(self) -> tuple[int, int]:
        status = os.fstat(self._fd)
        return status.st_dev, status.st_ino


def _high(fd: int) -> int:
    """Move the descriptor to a high number, which programs do not use."""
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    for lowest in (800, 200, 50):
        try:
            high = fcntl(fd, F_DUPFD_CLOEXEC, lowest)
        except ours(OSError):
            continue
        os.close(fd)
        return high
    return fd


def python_blocks() -> Callable[[], int] | None:
    """A function that counts the blocks of Python's allocator; None if there is none."""
    read = getattr(sys, "getallocatedblocks", None)
    return None if read is None or read() == 0 else read


def gc_counts() -> tuple[int, int, int]:
    """Python's full garbage collections so far, the objects that they freed, and the objects that
    collections of younger generations freed. Unreachable cycles stay until a collection, old ones
    until a full one. Absent since Python 3.14, which collects the old generation incrementally.
    """
    if sys.version_info >= (3, 14):
        return ABSENT, ABSENT, ABSENT
    try:
        *young, full = gc.get_stats()
        freed = sum(generation["collected"] for generation in young)
        return full["collections"], full["collected"], freed
    except ours(Exception):  # another implementation of Python, or the program has replaced it
        return ABSENT, ABSENT, ABSENT


class MallocInUse:
    """Bytes in use in malloc, and in `free_bytes` the free bytes it held at the last reading."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.free_bytes = ABSENT

    def __call__(self) -> int:
        """Bytes in use."""
        info = self._call()
        self.free_bytes = info.fordblks
        return int(info.uordblks + info.hblkhd)


def malloc_bytes() -> MallocInUse | str:
    """A function that reads the bytes in use in malloc (`mallinfo2`), or why there is none."""
    reason = _foreign_malloc()
    if reason:
        return reason
    try:
        call: Any = _mallinfo2()
    except ours(ImportError, OSError, AttributeError):
        return "this C library does not report it (glibc 2.33 and later do)"

    read = MallocInUse(call)
    if not any(_sees_a_block(read) for _ in range(3)):  # other threads may allocate meanwhile
        return "this process does not use the C library's malloc"
    return read


def _sees_a_block(read: Callable[[], int]) -> bool:
    before = read()
    block = bytes(_SELF_TEST_BYTES)
    moved = read() - before
    return len(block) <= moved < 2 * len(block)


def _mallinfo2() -> Any:
    import ctypes

    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    fields = [(name, ctypes.c_size_t) for name in names.split()]
    structure = type("mallinfo2", (ctypes.Structure,), {"_fields_": fields})
    call = ctypes.CDLL(None).mallinfo2
    call.restype = structure
    return call


def _foreign_malloc() -> str:
    try:
        with open("/proc/self/maps", "rb") as file:  # noqa: PTH123
            maps = file.read()
    except ours(OSError):
        return ""
    for library in _LIBRARIES_WITH_MALLOC:
        if library in maps:
            return f"the process uses {library.decode()} instead of malloc"
    return ""

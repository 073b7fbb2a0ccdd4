"""Readings of this process's memory that cost microseconds, each kept within a budget."""

from __future__ import annotations

import gc
import os
import sys
from time import monotonic

from .ring_format import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# Share of the time that one meter may take where nothing else is said: of steps, and again of
# phases. Chosen. What `mallinfo2` costs grows with the number of free chunks (1 us fresh, 70 ms at
# half a million).
SHARE = 0.001
# One reading that was interrupted must not silence its meter for long: the estimate of the cost
# grows at most so much from one call to the next.
_GROWTH, _GRACE_S = 4.0, 20e-6
# Readings in a row where phases begin and end: chosen, for a few that follow each other.
_BURST = 8
# Readings further apart than this are missing from the picture of a run. Chosen.
_SELDOM_S = 4.0
_LIBRARIES_WITH_MALLOC = (b"jemalloc", b"tcmalloc", b"mimalloc", b"libhoard", b"libsnmalloc")
# Below the size at which malloc would map it: freeing a mapped block changes how malloc goes on.
_SELF_TEST_BYTES = 1 << 16


class Budgeted:
    """A reading whose cost may grow: taken no sooner again than its cost / share allows.

    say: told once, in plain words, when that is seldom. burst: so many readings may follow each
    other at once after a rest that pays for them. credit_s: the same as a time, which readings may
    take beyond their share of it; at the start it is there.
    """

    def __init__(
        self,
        read: Callable[[], Any],
        say: Callable[[str], None],
        *,
        burst: int = 0,
        credit_s: float = 0.0,
        share: float = SHARE,
    ) -> None:
        self._read = read
        self._burst = burst
        self._ahead_s = credit_s / share
        self._share = share
        self._say = say
        self._said = False
        self._cost_s = 0.0
        self.not_before_s = 0.0
        self.took_s = 0.0  # by the last call

    def __call__(self) -> Any:
        """The reading, or ABSENT when it is too soon."""
        began_s = monotonic()
        if began_s < self.not_before_s:
            self.took_s = 0.0
            return ABSENT
        value = self._read()
        ended_s = monotonic()
        self.charge(ended_s - began_s, ended_s)
        return value

    def charge(self, took_s: float, now_s: float) -> None:
        """A reading has taken so long."""
        self.took_s = took_s
        self._cost_s = min(took_s, _GROWTH * self._cost_s + _GRACE_S)
        wait_s = self._cost_s / self._share
        rested_s = max(self._burst * wait_s, self._ahead_s)
        self.not_before_s = wait_s + max(self.not_before_s, now_s - rested_s)
        if wait_s > _SELDOM_S and not self._said:
            self._said = True
            took = f"one reading takes {self._cost_s * 1e3:.3g} ms in this process"
            self._say(f"{took}, so it is read every {wait_s:.2g} s or less often")


class BudgetedMetric:
    """A reading with two budgets: of steps, and of where phases begin and end.

    Evaluations are rare and short. Of one budget with the steps, the reading that tells what an
    evaluation kept would be the one that is left out.
    """

    def __init__(
        self,
        read: Callable[[], Any],
        say: Callable[[str], None],
        *,
        share: float = SHARE,
        credit_s: float = 0.0,
        burst_at_phases: int = _BURST,
    ) -> None:
        """share, credit_s: at steps."""
        self.at_steps = Budgeted(read, say, share=share, credit_s=credit_s)
        self.at_phases = Budgeted(read, lambda _: None, burst=burst_at_phases)


class ResidentSize:
    """The resident set in bytes, through a descriptor that is kept open.

    Programs close descriptors that are not theirs, and then open files of their own on the same
    number. So the descriptor sits high, an answer must look like one, and its identity is
    checked now and then.
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
        """Bytes, or ABSENT where the system does not tell."""
        try:
            if self._until_check <= 0:
                self._check()
            self._until_check -= 1
            return int(self._fields()[1]) * self._page_bytes
        except (OSError, ValueError, IndexError):
            self._until_check = 0
            return ABSENT

    def forget(self) -> None:
        """Give up the descriptor: it is the parent's, in a forked child."""
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
        except OSError:
            return False

    def _identify(self) -> tuple[int, int]:
        status = os.fstat(self._fd)
        return status.st_dev, status.st_ino


def _high(fd: int) -> int:
    """The same file on a number that programs do not count on."""
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    for lowest in (800, 200, 50):
        try:
            high = fcntl(fd, F_DUPFD_CLOEXEC, lowest)
        except OSError:
            continue
        os.close(fd)
        return high
    return fd


def python_blocks() -> Callable[[], int] | None:
    """Blocks that Python's own allocator has handed out; None on other implementations."""
    read = getattr(sys, "getallocatedblocks", None)
    return None if read is None or read() == 0 else read


def gc_counts() -> tuple[int, int, int]:
    """What Python's collector has done so far: full collections, the objects that these freed, and
    those that collections of the young freed. Objects in cycles wait for it when they are dropped,
    old ones for a full collection. Unknown from Python 3.14 on, which collects the old bit by bit.
    """
    if sys.version_info >= (3, 14):
        return ABSENT, ABSENT, ABSENT
    try:
        *young, full = gc.get_stats()
        freed = sum(generation["collected"] for generation in young)
        return full["collections"], full["collected"], freed
    except Exception:  # other implementations of Python, or a program that has put its own there
        return ABSENT, ABSENT, ABSENT


class MallocInUse:
    """Bytes that malloc has handed out; and what it holds beside them, as of the last reading."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.free_bytes = ABSENT

    def __call__(self) -> int:
        """Bytes in use."""
        info = self._call()
        self.free_bytes = info.fordblks
        return int(info.uordblks + info.hblkhd)


def malloc_bytes() -> MallocInUse | str:
    """What reads the bytes that malloc has handed out (`mallinfo2`), or why that cannot be."""
    reason = _foreign_malloc()
    if reason:
        return reason
    try:
        call: Any = _mallinfo2()
    except (ImportError, OSError, AttributeError):
        return "this C library does not tell (glibc does from version 2.33 on)"

    read = MallocInUse(call)
    if not any(_sees_a_block(read) for _ in range(3)):  # other threads may allocate meanwhile
        return "memory does not come from the C library's malloc here"
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
    except OSError:
        return ""
    for library in _LIBRARIES_WITH_MALLOC:
        if library in maps:
            return f"the process uses {library.decode()} in place of malloc"
    return ""

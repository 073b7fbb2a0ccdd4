"""Takes a census of memory when one is due: on request, when memory runs out, or from time to time.

The census runs at a step, in its thread, and without steps in the probe's own thread. What was
found is written to a file beside the ring, as JSON: the first census, the last, and some between.
"""

from __future__ import annotations

import os
import sys
from math import inf
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PAGESIZE, mmap
from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
from time import monotonic, thread_time

from . import ring_format
from .device_snapshot import DeviceSnapshot
from .framework_allocators import ReadAt
from .guard import Attempts, never_raises, ours
from .kept_bytes import Arrays
from .memory_census import census
from .oom_at_exit import failed_frames
from .spacing import Spacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from .holder_sampler import HolderSampler
    from .name_walk import NameWalk
    from .session import Session

VERSION = 1
OUT_OF_MEMORY, REQUEST, REGULAR = "out_of_memory", "request", "regular"
# Share of the process's time for regular ones, what the first may take beyond it, and when they
# begin. One takes 100 ms beside torch. Heuristic.
_SHARE, _CREDIT_S, _AT_LEAST_S = 0.005, 0.6, 2.0
# Requests are checked this often, which takes 2 us, and a program that catches errors of its
# device's memory does not pay for a census at each of them. Heuristic.
_CHECK_S, _BETWEEN_ERRORS_S = 0.1, 30.0
_MOST_KEPT = 6
# Where memory has run out: the time after which nothing more is begun, of the 0.2 s that it may
# take. Heuristic: an orchestrator may kill the program.
_LONGEST_S = 0.15
# Address space that is set aside for the census of a process that has reached the limit of its
# own (`ulimit -v`), at most this part of the limit. It takes no memory. A census beside torch takes
# 8 MB. Heuristic.
_RESERVE_BYTES, _RESERVE_PART = 32 << 20, 64
# Names of the function in torch that calls one of ours where an allocation on a GPU has failed, in
# the thread that asked for it.
_OBSERVE = ("_cuda_attach_out_of_memory_observer", "_cuda_attachOutOfMemoryObserver")


class CensusSampler:
    """The censuses of one process. No method raises."""

    def __init__(self, session: Session, holders: Callable[[], HolderSampler | None]) -> None:
        """holders: gives what walks, None if nothing may walk."""
        self._session, self._holders = session, holders
        self._is_regular = os.environ.get(ring_format.CENSUS_VARIABLE) == "1"
        self._snapshot = DeviceSnapshot(session)
        self._attempts = Attempts()
        self._observes = self._running = False
        self._check_s = self._next_error_s = 0.0
        self._request = self._answer = ""
        self._reserve = _reserve()
        self._begin()

    @never_raises
    def tick(self, *, is_idle: bool = True) -> None:
        """Take a census if one is due. Called at steps, and by the heartbeat.

        is_idle: False while the next step is awaited.
        """
        try:
            now_s = monotonic()
            if self._running or not self._attempts.may_begin():
                return
            if now_s >= self._check_s:
                self._check_s = now_s + _CHECK_S
                self._request = self._request or self._session.take_request()
                self._observe()
            if is_idle and self._request:
                self._do_requested()
            elif is_idle and self._is_regular and self._spacing.is_due():
                cost_s = self._take(REGULAR)
                self._spacing.took(cost_s, cost_s)
        except ours(Exception) as error:
            self._fail(error)

    @never_raises
    def out_of_memory(self) -> None:
        """The program ends because it is out of memory."""
        try:
            self.before_exit()  # (a worker comes here at once)
            if not self._attempts.is_over and not self._running:
                self._take(OUT_OF_MEMORY, failed_frames())
        except ours(Exception) as error:
            self._fail(error)

    def before_exit(self) -> None:
        """The program has ended: the address space that was set aside may be used from now on."""
        if self._reserve is not None:
            self._reserve.close()

    def at_end(self) -> None:
        """The last readings and the last census are recorded."""
        self._snapshot.write()

    @never_raises
    def take_now(self) -> None:
        """Take a census in this thread."""
        try:
            if not self._running:
                self._take(REQUEST)
        except ours(Exception) as error:
            self._fail(error)

    def stop(self) -> None:
        """Take no further census. (Torch cannot remove an observer.)"""
        self._attempts.is_over = True
        self._snapshot.close()

    def after_fork_in_child(self) -> None:
        """Start from zero in a forked child."""
        self._running = False
        self._snapshot.after_fork_in_child()
        self._begin()

    def _begin(self) -> None:
        self._taken: list[dict[str, Any]] = []
        self._request = self._answer = ""
        self._check_s = self._next_error_s = 0.0
        self._spacing = Spacing(_SHARE, _CREDIT_S, _AT_LEAST_S)

    def _do_requested(self) -> None:
        """A request is one or two words, joined by "+", and a token that the answer has."""
        request, self._request = self._request, ""
        words, _, self._answer = request.partition(" ")
        holders = self._holders()
        for word in words.split("+"):
            if word != ring_format.WALK_OFTEN:
                self._take(word)
            elif holders is not None:
                holders.walk_often()

    def _observe(self) -> None:
        """Learn of failed allocations on a GPU, once the program uses one."""
        torch: Any = None if self._observes else sys.modules.get("torch")
        cuda: Any = getattr(torch, "cuda", None)
        if not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
            return
        self._observes = True
        attach = [getattr(torch._C, name, None) for name in _OBSERVE]
        for one in filter(None, attach[:1] if attach[0] else attach):
            one(self._allocation_failed)
        self._snapshot.begin(torch)

    @never_raises
    def _allocation_failed(self, *_: Any) -> None:
        """An allocation on a GPU has failed; the program may catch the error."""
        try:
            now_s = monotonic()
            if now_s >= self._next_error_s and not self._attempts.is_over and not self._running:
                self._next_error_s = now_s + _BETWEEN_ERRORS_S
                self._take(OUT_OF_MEMORY)
        except ours(Exception) as error:
            self._fail(error)
        self._snapshot.write()

    def _take(self, why: str, frames: Sequence[Any] = ()) -> float:
        """Take a census and write it. Returns its CPU time."""
        self._running = True  # a signal handler may tag a step meanwhile
        began_s, at_s = thread_time(), monotonic()
        is_last = why == OUT_OF_MEMORY
        until_s = at_s + _LONGEST_S if is_last else inf
        found: dict[str, Any] = {}

        def then(arrays: Arrays, walk: NameWalk | None) -> None:
            found.update(census(arrays, walk, with_types=not is_last, until_s=until_s))

        try:
            about = {"why": why, "step": self._session.step_now(), "at_s": at_s}
            holders = self._holders()
            if holders is None:
                with self._session.own_objects:
                    then(Arrays(), None)
            else:
                holders.walk_now(then, frames, until_s)
            took_s = thread_time() - began_s
            found.update(about, took_s=took_s, allocators=self._allocators())
            self._write(found)
        finally:
            self._running = False
        return took_s

    def _allocators(self) -> dict[str, dict[str, int]]:
        return self._session.schedule.allocators.read(ReadAt.EXIT)

    def _write(self, found: dict[str, Any]) -> None:
        import json

        self._taken.append(found)
        if len(self._taken) > _MOST_KEPT:
            del self._taken[1:-1:2]
        document = {"version": VERSION, "answer": self._answer, "censuses": self._taken}
        data = json.dumps(document).encode("ascii")
        self._session.write_beside(data, ring_format.CENSUS_SUFFIX)

    def _fail(self, error: Exception) -> None:
        if self._attempts.failed(error):
            text = f"the census of memory failed ({type(error).__name__})"
            self._session.note(text, "census")


def _reserve() -> mmap | None:
    """The address space for a census once there is no more, None if there is none now."""
    most_bytes, _ = getrlimit(RLIMIT_AS)
    size = _RESERVE_BYTES
    if most_bytes != RLIM_INFINITY:
        size = max(PAGESIZE, min(size, most_bytes // _RESERVE_PART))
    try:
        return mmap(-1, size, MAP_PRIVATE | MAP_ANONYMOUS)
    except ours(OSError, ValueError):
        return None

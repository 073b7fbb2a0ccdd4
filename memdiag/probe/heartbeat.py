"""A thread that calls the probe once a second (at first four times), even without any steps.

It does not use `threading`: the program's list of threads, and the wait for them at its end, stay
unchanged.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # (`signal` costs the start a millisecond)
import _thread
import os
import sys
from time import monotonic

from .guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

TICK_S = 1.0
# The first ticks are shorter, for programs that run ten seconds. Heuristic.
_EARLY, EARLY_S = 32, 0.25
# The longest call of `beat` counts the tensors among a million objects. A fork, too, waits at most
# so long for the thread to end.
_LAST_BEAT_S = 1.0
_FAULTS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP")
_NO_DESCRIPTOR = -2


class Heartbeat:
    """Calls `beat` once a second in a thread of its own, until it is stopped."""

    def __init__(self, beat: Callable[[], None]) -> None:
        """Create it in the main thread of the interpreter."""
        self._beat = beat
        self._look: Callable[[], None] | None = None
        self._look_s = TICK_S
        self._may_start = _is_first_interpreter()
        self._stop: Any = None
        # The threads that may not have ended, each with its id in the system, 0 before it runs.
        self._threads: list[list[int]] = []
        self._waits = self._is_first = self._is_beating = False

    def look_every(self, look_s: float, look: Callable[[], None] | None) -> None:
        """Call `look` between the beats, too, this often; None: no longer."""
        self._look, self._look_s = look, look_s

    def start(self, after_s: float = 0.0) -> None:
        """Start the thread, unless it is running.

        after_s: how long it waits before it beats; a later start without a wait takes its place.
        """
        if self._waits and not after_s:
            self.stop()
        if self._stop is not None or not self._may_start:
            return
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        try:
            # The thread inherits this mask: a signal that all threads of the program block stays
            # pending for its `sigwait`, and is not delivered to our thread.
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _signals_of_others())
            self._stop = _thread.allocate_lock()
            self._stop.acquire()
            self._waits = after_s > 0
            thread = [0]
            _thread.start_new_thread(self._live, (self._stop, after_s, thread))
            self._threads.append(thread)
        except ours(Exception):
            self._stop = None  # the user's limit of threads is reached: measure at steps only
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)

    def stop(self) -> None:
        """Stop the thread, soon."""
        self._waits = False
        stop, self._stop = self._stop, None
        if stop is not None:
            stop.release()

    def end(self) -> None:
        """Stop the thread, and wait for a call of `beat` to return.

        Python stops the threads that are left at its end where they are. What they refer to would
        not be freed, and no `__del__` of the program run for it.
        """
        self.stop()
        self._wait_until(lambda: not self._is_beating)

    def before_fork(self) -> bool:
        """Stop the thread, because Python 3.12 and later warn of forks in threaded processes.

        Returns True if it has to be started again after the fork. In older versions only the first
        call of `beat` is awaited: its imports hold locks, which the child could never take.
        """
        if sys.version_info < (3, 12):
            self._wait_until(lambda: not self._is_first)
            return False
        is_running = self._stop is not None
        self.stop()
        self._wait_until(self._has_ended)
        return is_running

    def after_fork_in_child(self) -> None:
        """The thread exists only in the parent."""
        self._stop = None
        self._threads = []
        self._waits = self._is_first = self._is_beating = False

    def _has_ended(self) -> bool:
        """Return True if all threads are gone from the system, a moment after Python ends them.

        One that has just started may not have set its id yet.
        """
        self._threads = [
            one
            for one in self._threads
            if one[0] == 0 or os.path.exists(f"/proc/self/task/{one[0]}")  # noqa: PTH110
        ]
        return not self._threads

    def _wait_until(self, is_true: Callable[[], bool]) -> None:
        from time import sleep

        until_s = monotonic() + _LAST_BEAT_S
        while not is_true() and monotonic() < until_s:
            sleep(0.0002)

    def _live(self, stop: Any, after_s: float, thread: list[int]) -> None:
        try:
            thread[0] = _thread.get_native_id()
            if after_s and stop.acquire(timeout=after_s):
                return
            self._waits = False
            early = _EARLY
            next_s = monotonic() + EARLY_S
            while not stop.acquire(timeout=self._pause_s(next_s)):
                look = self._look
                if look is not None:
                    look()
                if monotonic() < next_s:
                    continue
                self._is_beating = True
                self._is_first = early == _EARLY
                early -= 1
                self._beat()
                self._is_first = self._is_beating = False
                next_s = monotonic() + (EARLY_S if early > 0 else TICK_S)
        except ours(Exception):
            self._is_first = self._is_beating = False

    def _pause_s(self, next_s: float) -> float:
        pause_s = max(0.0, next_s - monotonic())
        return pause_s if self._look is None else min(pause_s, self._look_s)


def _signals_of_others() -> set[int]:
    """All signals except faults, which are raised in the thread that causes them."""
    faults = {getattr(_signal, name, 0) for name in _FAULTS}
    signals: set[int] = _signal.valid_signals()
    return signals - faults


def _is_first_interpreter() -> bool:
    """Return True in the main interpreter.

    Python aborts the process if a subinterpreter ends while it has a thread. Only the main thread
    of the main interpreter may set the wakeup descriptor: the error for an invalid one differs.
    """
    try:
        _signal.set_wakeup_fd(_NO_DESCRIPTOR)
    except ours(OSError):
        return True
    except ours(ValueError):
        return False
    return True

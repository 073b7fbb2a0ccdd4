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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

TICK_S = 1.0
# The first ticks are shorter, for programs that run ten seconds. Heuristic.
_EARLY, EARLY_S = 32, 0.25
_LEAVING_S = 0.1
_FAULTS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP")
_NO_DESCRIPTOR = -2


class Heartbeat:
    """Calls `beat` once a second in a thread of its own, until it is stopped."""

    def __init__(self, beat: Callable[[], None]) -> None:
        """Create it in the main thread of the interpreter."""
        self._beat = beat
        self._may_start = _is_first_interpreter()
        self._stop: Any = None
        self._thread_id = 0

    def start(self) -> None:
        """Start the thread, unless it is running."""
        if self._stop is not None or not self._may_start:
            return
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        try:
            # The thread inherits this mask: a signal that all threads of the program block stays
            # pending for its `sigwait`, and is not delivered to our thread.
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _signals_of_others())
            self._stop = _thread.allocate_lock()
            self._stop.acquire()
            self._thread_id = 0
            _thread.start_new_thread(self._live, (self._stop,))
        except Exception:
            self._stop = None  # the user's limit of threads is reached: measure at steps only
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)

    def stop(self) -> None:
        """Stop the thread, soon."""
        stop, self._stop = self._stop, None
        if stop is not None:
            stop.release()

    def before_fork(self) -> bool:
        """Stop the thread, because Python 3.12 and later warn of forks in threaded processes.

        Returns True if it has to be started again after the fork.
        """
        if self._stop is None or sys.version_info < (3, 12):
            return False
        self.stop()
        self._wait_for_end()
        return True

    def after_fork_in_child(self) -> None:
        """The thread exists only in the parent."""
        self._stop = None

    def _wait_for_end(self) -> None:
        """Wait until the thread is gone from the system, a moment after Python ends it.

        A thread that has just started may not have set its id yet.
        """
        from time import sleep

        until_s = monotonic() + _LEAVING_S
        while monotonic() < until_s:
            known = self._thread_id
            if known and not os.path.exists(f"/proc/self/task/{known}"):  # noqa: PTH110
                return
            sleep(0.0002)

    def _live(self, stop: Any) -> None:
        try:
            self._thread_id = _thread.get_native_id()
            early = _EARLY
            while not stop.acquire(timeout=EARLY_S if early > 0 else TICK_S):
                early -= 1
                self._beat()
        except Exception:
            return


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
    except OSError:
        return True
    except ValueError:
        return False
    return True

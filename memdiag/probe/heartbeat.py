"""A thread that looks after the probe once a second (four times at first), also where the program
tells no steps.

It is none of `threading`'s: the program's list of threads, and what waits for them at its end,
stay as they are.
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
# A program of ten seconds is to be known as well: so many ticks at first are shorter. Chosen.
_EARLY, EARLY_S = 32, 0.25
_LEAVING_S = 0.1
_FAULTS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP")
_NO_DESCRIPTOR = -2


class Heartbeat:
    """Calls `beat` once a second in a thread of its own, until it is stopped."""

    def __init__(self, beat: Callable[[], None]) -> None:
        """Make it in the thread that the interpreter has begun with."""
        self._beat = beat
        self._may_start = _is_first_interpreter()
        self._stop: Any = None
        self._thread_id = 0

    def start(self) -> None:
        """Begin, unless it beats already."""
        if self._stop is not None or not self._may_start:
            return
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        try:
            # The thread inherits this: a signal that all of the program's threads block waits for
            # its `sigwait` and is not delivered to ours.
            _signal.pthread_sigmask(_signal.SIG_BLOCK, _signals_of_others())
            self._stop = _thread.allocate_lock()
            self._stop.acquire()
            self._thread_id = 0
            _thread.start_new_thread(self._live, (self._stop,))
        except Exception:
            self._stop = None  # no more threads for this user: steps must do
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)

    def stop(self) -> None:
        """End the thread, soon."""
        stop, self._stop = self._stop, None
        if stop is not None:
            stop.release()

    def before_fork(self) -> bool:
        """End the thread: since Python 3.12 a fork beside a thread is warned of.

        True where it is to be started again after the fork.
        """
        if self._stop is None or sys.version_info < (3, 12):
            return False
        self.stop()
        self._wait_for_end()
        return True

    def after_fork_in_child(self) -> None:
        """The thread stayed with the parent."""
        self._stop = None

    def _wait_for_end(self) -> None:
        """Until the system has forgotten the thread: it does so a moment after Python does.

        One that has just been started may not have said yet which it is.
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
    """All but what a fault raises, in the thread that makes it."""
    faults = {getattr(_signal, name, 0) for name in _FAULTS}
    signals: set[int] = _signal.valid_signals()
    return signals - faults


def _is_first_interpreter() -> bool:
    """Python aborts the process where another one of its interpreters ends beside a thread.

    Only the first one's main thread may set this descriptor, which is looked at next.
    """
    try:
        _signal.set_wakeup_fd(_NO_DESCRIPTOR)
    except OSError:
        return True
    except ValueError:
        return False
    return True

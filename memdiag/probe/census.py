"""When to count tensors: seldom enough to stay within a share of the process's time.

The count runs at step tags, in the thread that tags. Where there are none a thread of the
probe's own does it. That thread is none of `threading`'s: the program's list of threads, and
what waits for them at its end, stay as they are.
"""

from __future__ import annotations

import _thread
import os
import sys
from time import monotonic, thread_time

from . import layout
from .layout import ABSENT
from .tensors import TensorCount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .session import Session

# Share of the process's time that counting may take, and when to begin: a process with torch
# has some 200,000 objects, which take 20-80 ms to go through.
SHARE = 0.004
FIRST_S = 8.0
# The thread looks so often whether it is needed; it records the cheap meters when no step did.
_TICK_S = 1.0
_LEAVING_S = 0.1


class Census:
    """The tensor counts of one process."""

    def __init__(self, session: Session, torch: Any) -> None:
        self._session = session
        self._count = TensorCount(torch)
        self._began_s = monotonic()
        self._due_s = self._began_s + FIRST_S
        self._spent_s = 0.0
        self._running = self._said = False
        self._steps_seen = 0
        self._stop: Any = None
        self._thread_id = 0

    def tick(self) -> None:
        """Count if it is due. Called at steps, and by the thread where there are none."""
        try:
            if monotonic() >= self._due_s and not self._running:
                self._take()
        except Exception:
            self._due_s = float("inf")  # it would fail again
            self._session.note("counting them failed in this version of torch", "tensors")

    def start_thread(self) -> None:
        """Go on even when no step is told."""
        try:
            self._stop = _thread.allocate_lock()
            self._stop.acquire()
            self._thread_id = 0
            _thread.start_new_thread(self._live, (self._stop,))
        except Exception:
            self._stop = None  # no more threads for this user: steps must do

    def before_fork(self) -> None:
        """End the thread: since Python 3.12 a fork beside a thread is warned of."""
        try:
            if self._stop is not None and sys.version_info >= (3, 12):
                self._stop.release()
                self._stop = None
                self._wait_for_end()
        except Exception:
            self._stop = None

    def after_fork_in_parent(self) -> None:
        """Start the thread again that ended before the fork."""
        if self._stop is None:
            self.start_thread()

    def after_fork_in_child(self) -> None:
        """The thread stayed with the parent."""
        self._stop = None
        self._running = self._said = False
        self._began_s = monotonic()
        self._due_s = self._began_s + FIRST_S
        self._spent_s = 0.0

    def _take(self) -> None:
        self._running = True  # a signal handler may tag a step while we count
        try:
            began_s = thread_time()
            readings = self._count()
            cost_s = thread_time() - began_s
        finally:
            self._running = False
        now_s = monotonic()
        self._spent_s += cost_s
        # The next one, at this one's cost, must fit into the share of the whole time till then.
        enough_s = self._began_s + (self._spent_s + cost_s) / SHARE
        self._due_s = max(now_s + _TICK_S, enough_s)
        if readings is None:
            self._say_why_not()
        else:
            values = [readings.get(metric, ABSENT) for metric in layout.READINGS]
            self._session.meters(layout.READING.pack(*values))

    def _say_why_not(self) -> None:
        if not self._said:
            self._said = True
            text = "not counted while a mode intercepts every operation, nor without the GIL"
            self._session.note(text, "tensors")

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
            while not stop.acquire(timeout=_TICK_S):
                self._session.learn_role()
                if self._session.steps_told == self._steps_seen:
                    self._session.meters(self._session.readings())
                    self.tick()
                self._steps_seen = self._session.steps_told
        except Exception:
            return

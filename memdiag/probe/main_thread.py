"""Calls a function in the main thread, between two instructions of the program.

Python has such pending calls for what may not run at any time, such as the handlers of signals. It
makes one as soon as the main thread runs Python code. What a signal handler of the program raises
meanwhile is raised in the program.
"""

from __future__ import annotations

import sys
from time import monotonic

from .guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable

# A call is lost if a signal handler of the program raises an exception just before it. Heuristic.
_LOST_AFTER_S = 2.0


class MainThreadCall:
    """A call of a function in the main thread; as a rule at most one is pending."""

    def __init__(self, function: Callable[[], None]) -> None:
        """function: exceptions of the probe in it are ignored."""
        self._function = function
        self._pending_until_s = 0.0
        self._add: Callable[[], int] | None = None

    def request(self) -> None:
        """Have it called soon, unless it is pending. Raises where Python has no such calls."""
        now_s = monotonic()
        if now_s < self._pending_until_s:
            return
        if self._add is None:
            self._add = _pending_call(self)
        if self._add() == 0:  # else too many are pending
            self._pending_until_s = now_s + _LOST_AFTER_S

    def close(self) -> None:
        """Call the function no more, and let go of it."""
        self._function = _nothing

    def after_fork_in_child(self) -> None:
        """Forget what was requested before a fork: the child may have lost it."""
        self._pending_until_s = 0.0

    def __bool__(self) -> bool:
        """Call the function: Python asks for the truth of this object. Always False: no error."""
        self._pending_until_s = 0.0
        try:
            self._function()
        except ours(Exception):
            return False
        return False


def raise_soon(error: BaseException) -> bool:
    """Have an exception of the program raised in the main thread, once the functions of the probe
    that are called now have returned. Returns False where that is not possible.
    """
    try:
        return _Raising(error).request()
    except ours(Exception):
        return False


class _Raising:
    """Raises an exception once."""

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error
        self._add = _pending_call(self)

    def request(self) -> bool:
        return self._add() == 0

    def __bool__(self) -> bool:
        """Called by Python in the main thread, between any two instructions."""
        if _is_probe_called(sys._getframe(1)) and self.request():
            return False
        error, self._error = self._error, None
        if error is not None:
            raise error
        return False


def _is_probe_called(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__package__") == __package__:
            return True
        frame = frame.f_back
    return False


def _pending_call(thing: Any) -> Callable[[], int]:
    """`Py_AddPendingCall` of `PyObject_IsTrue`, a function in C that takes an object and returns 0,
    or -1 with an exception. Raises AttributeError or OSError if they are missing.

    The object is never freed: Python has its address as long as a call is pending.
    """
    import ctypes

    python = ctypes.PyDLL(None)  # (not ctypes.pythonapi, which the program may use)
    add = python.Py_AddPendingCall
    add.argtypes = [ctypes.c_void_p, ctypes.py_object]
    add.restype = ctypes.c_int
    python.Py_IncRef(ctypes.py_object(thing))
    is_true = ctypes.cast(python.PyObject_IsTrue, ctypes.c_void_p)
    return lambda: int(add(is_true, thing))


def _nothing() -> None:
    """What a call is for that comes too late."""

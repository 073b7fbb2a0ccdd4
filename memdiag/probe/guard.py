"""Keeps exceptions of the probe out of the program, and lets those of the program pass.

What a signal handler or a trace function of the program raises while a function of the probe runs
passes through that function: it belongs to the program, as a timeout does.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # (`signal` costs the start a millisecond)
import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
    E = TypeVar("E", bound=BaseException)

_arguments_of: Any = vars(BaseException)["args"].__get__
_VARIABLE_ARGUMENTS = 4  # a flag of code objects
_MOST_FRAMES = 1000
# Work that needs more of the stack than the program has left is begun anew so many times, the first
# time after this, then after twice as long each time. Heuristic.
_MOST_TIMES_TOO_DEEP, _RETRY_S = 6, 1.0


def ours(*kinds: type[E]) -> tuple[type[E], ...]:
    """These kinds of exceptions, for `except ours(OSError)`; none if the exception that is being
    handled is not one of the probe: it passes.
    """
    try:
        error = sys.exc_info()[1]
        return () if error is not None and is_foreign(error) else kinds
    except Exception as failure:
        at = failure.__traceback__
        while at is not None:
            if at.tb_frame.f_globals.get("__package__") != __package__:
                raise  # a handler has interrupted this function
            at = at.tb_next
        return kinds


def never_raises(function: F) -> F:
    """Make a function return None instead of raising an exception of the probe."""

    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            return None  # (no function can be called here)
        except ours(Exception):
            return None

    return guarded  # type: ignore[return-value]


def is_foreign(error: BaseException) -> bool:
    """Return True if an exception is not one of the probe: Python has called a function of the
    program meanwhile, or another thread has asked for it.

    Python calls signal handlers and trace functions with the frame that they interrupt.
    """
    if not isinstance(error, Exception):
        return True
    at = error.__traceback__
    codes: set[int] | None = None
    for _ in range(_MOST_FRAMES):
        if at is None:
            return False
        above, at = at.tb_frame, at.tb_next
        if at is None:
            return _is_from_another_thread(error, above)
        frame = at.tb_frame
        if _is_ours(frame):
            continue
        codes = _codes_of_handlers() if codes is None else codes
        if id(frame.f_code) in codes or any(one is above for one in _arguments(frame)):
            return True
    return False


def _is_ours(frame: Any) -> bool:
    return bool(frame.f_globals.get("__package__") == __package__)


def _is_from_another_thread(error: Exception, frame: Any) -> bool:
    """Return True if `PyThreadState_SetAsyncExc` has raised it in a frame of the probe: it makes
    exceptions without arguments. Those of C code have some, but for built-in ones.
    """
    is_without = not _arguments_of(error) and type(error).__module__ != "builtins"
    return is_without and _is_ours(frame)


def _arguments(frame: Any) -> list[Any]:
    """The arguments that a function was called with, as far as its variables still have them."""
    code = frame.f_code
    number = code.co_argcount
    has_more = code.co_flags & _VARIABLE_ARGUMENTS
    if not number and not has_more:
        return []
    known = frame.f_locals
    found = [known.get(name) for name in code.co_varnames[:number]]
    if has_more:
        rest = known.get(code.co_varnames[number + code.co_kwonlyargcount])
        found += rest if type(rest) is tuple else ()
    return found


def _codes_of_handlers() -> set[int]:
    """The code of the signal handlers, which may have bound their arguments anew."""
    from functools import partial
    from types import FunctionType, MethodType

    found = set()
    for number in _signal.valid_signals():
        handler = _signal.getsignal(number)
        if type(handler) is partial:
            handler = handler.func
        if type(handler) is MethodType:
            handler = handler.__func__
        if type(handler) is FunctionType:
            found.add(id(handler.__code__))
    return found


class Attempts:
    """Whether work that has failed is begun again: not, unless the stack of the program was too
    deep for it. Then it is tried at some later steps.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._retry_s = 0.0
        self._times_too_deep = 0

    def may_begin(self) -> bool:
        """Return True if the work may be done now."""
        return not self.is_over and (not self._retry_s or monotonic() >= self._retry_s)

    def failed(self, error: BaseException) -> bool:
        """The work has failed. Return True if that is its end."""
        if isinstance(error, RecursionError) and self._times_too_deep < _MOST_TIMES_TOO_DEEP:
            self._retry_s = monotonic() + _RETRY_S * 2**self._times_too_deep
            self._times_too_deep += 1
        else:
            self.is_over = True
        return self.is_over

"""Follows the lines that run: by `sys.monitoring`, before Python 3.12 by `sys.settrace`.

`sys.monitoring` reports the lines of the program's functions in all threads, and nothing else gets
slower. `sys.settrace` reports those of one thread, and is called at each call of a function.
"""

from __future__ import annotations

import functools
import itertools
import sys
import types
from _thread import get_ident
from time import perf_counter

from . import plain_access
from .guard import ours
from .loop_events import TOOLS, monitoring
from .plain_access import (
    class_attributes,
    locals_of,
    module_attributes,
    module_file,
    uses_locals,
)
from .program_code import GENERATORS, generator_frame, is_users, running_frames
from .tracked_objects import objects_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    # What happens: (frame, code and line that run next or None, in a trace function).
    Line = tuple[Any, int]
    OnLine = Callable[[Any, "Line | None", bool], None]

_NAME = "memdiag"
_MOST_CODES = 4000
_MOST_WRAPPERS = 8
_TRIALS, _CALLS = 3, 40  # to measure what a call takes
_CALLBACK_S = 3e-7
# CO_GENERATOR, CO_COROUTINE, and CO_ASYNC_GENERATOR, as in `inspect`.
_SUSPENDED = 0x20 | 0x80 | 0x200
_MANY_CALLS = 255  # calls of functions of libraries that are accounted for together, less one


def open_lines(
    on_line: OnLine, on_calls: Callable[[int], None], on_error: Callable[[], None]
) -> MonitoredLines | TracedLines | str:
    """Follow lines from the next `resume` on, or why that is not possible.

    on_calls: called with a number of calls of functions that are not the program's, each of which
    has called the trace function, before Python 3.12. on_error: called if one of these fails.
    """
    if sys.gettrace() is not None:
        return "a debugger or a coverage tool traces the program"
    module = monitoring()
    if module is not None:
        for tool in TOOLS:
            if module.get_tool(tool) is None:
                module.use_tool_id(tool, _NAME)
                return MonitoredLines(module, tool, on_line, on_error)
        return "other tools use the ids 3 and 4 of sys.monitoring"
    if sys.version_info >= (3, 12):
        return "lines cannot be followed without the GIL"
    return TracedLines(on_line, on_calls, on_error)


class MonitoredLines:
    """Lines by `sys.monitoring`, in all threads."""

    sees_all_threads = True

    def __init__(
        self, module: Any, tool: int, on_line: OnLine, on_error: Callable[[], None]
    ) -> None:
        self._module, self._tool, self._on_line = module, tool, on_line
        self._codes: dict[int, Any] = {}  # (hashing a code object reads its bytecode)
        events = module.events
        self._callbacks = {
            events.LINE: _guarded(self._line, on_error),
            events.PY_RESUME: _guarded(self._resumed, on_error),
            events.PY_START: _guarded(self._started, on_error),
            events.PY_RETURN: _guarded(self._left, on_error),
            events.PY_YIELD: _guarded(self._left, on_error),
        }
        self._is_open = False
        self._left_out: set[int] = set()

    def resume(self) -> bool:
        """Follow the lines of all functions that the program has when this is first called.

        Returns False if that is not possible any more: a debugger has begun.
        """
        if self._is_open:
            return sys.gettrace() is None
        self._is_open = True
        module, tool, events = self._module, self._tool, self._module.events
        for event, callback in self._callbacks.items():
            module.register_callback(tool, event, callback)
        wanted = events.LINE | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD
        for code in program_codes():
            self._codes[id(code)] = code
            module.set_local_events(tool, code, wanted)
        return True

    def call_s(self) -> float:
        """What calling a callback takes. Heuristic: 0.1 to 0.3 us."""
        return _CALLBACK_S

    def pause(self) -> None:
        """(The lines are reported all the same.)"""

    def leave_out(self, code: Any) -> None:
        """Follow the lines of a function no more, only that it begins."""
        events = self._module.events
        self._left_out.add(id(code))
        self._module.set_local_events(self._tool, code, events.PY_START | events.PY_RESUME)

    def caller(self, frame: Any) -> Line | None:
        """The line of the program that runs in `frame`, or that has called it; None if the next
        lines there are not reported.
        """
        return _caller(frame, self._is_followed)

    def _is_followed(self, code: Any) -> bool:
        return id(code) not in self._left_out

    def is_in_callback(self) -> bool:
        """(Nothing happens after a callback.)"""
        return False

    def rest(self) -> None:
        """(The lines are reported all the same.)"""

    def close(self) -> bool:
        """Remove all events, and free the tool id. Returns True."""
        module, tool = self._module, self._tool
        if self._callbacks:
            try:
                while self._codes:
                    module.set_local_events(tool, self._codes.popitem()[1], 0)
            finally:
                while self._callbacks:
                    module.register_callback(tool, self._callbacks.popitem()[0], None)
                module.free_tool_id(tool)
        return True

    def _line(self, code: Any, line: int) -> None:
        self._on_line(sys._getframe(2), (code, line), False)

    def _started(self, code: Any, _: int) -> None:
        self._on_line(sys._getframe(2), None, False)

    def _resumed(self, code: Any, _: int) -> None:
        frame = sys._getframe(2)
        line = (code, frame.f_lineno) if self._is_followed(code) else None
        self._on_line(frame, line, False)

    def _left(self, code: Any, offset: int, value: Any) -> None:
        frame = sys._getframe(2)
        self._on_line(frame, self.caller(frame.f_back), False)


class TracedLines:
    """Lines by `sys.settrace`, in the thread that calls `resume`."""

    sees_all_threads = False

    def __init__(
        self, on_line: OnLine, on_calls: Callable[[int], None], on_error: Callable[[], None]
    ) -> None:
        self._on_line, self._on_calls = on_line, on_calls
        self._on_error = on_error
        self._is_closed = self._is_on = False
        self._flags = 0  # of all code that was traced
        self._thread = 0
        self._libraries: set[str] = set()  # their files
        self._left_out: set[int] = set()
        # One object, so that it can be told from the trace function of another tool.
        self._function = plain_access.own_trace = self._trace_function()

    def resume(self) -> bool:
        """Trace the functions that run in this thread, and those that it calls.

        Returns False if that is not possible any more: another tool traces this thread.
        """
        if self._is_closed or sys.gettrace() is not None:
            return False
        frame: Any = sys._getframe(1)
        while frame is not None:
            if self._is_followed(frame.f_code) and frame.f_trace is None:
                frame.f_trace = self._function
                self._flags |= frame.f_code.co_flags
            frame = frame.f_back
        self._is_on, self._thread = True, get_ident()
        plain_access.is_tracing = True
        sys.settrace(self._function)
        return True

    def call_s(self) -> float:
        """What calling the trace function takes, measured in this thread with tracing off."""
        plain_s = _time_of_calls()
        before = sys.gettrace()
        self._libraries.add(_nothing.__code__.co_filename)
        plain_access.is_tracing = True
        sys.settrace(self._function)
        try:
            traced_s = _time_of_calls()
        finally:
            sys.settrace(before)
            plain_access.is_tracing = False
        return max(0.0, traced_s - plain_s)

    def pause(self) -> None:
        """Trace nothing until the next `resume`, if it is this thread that is traced."""
        if get_ident() == self._thread:
            if sys.gettrace() is self._function:
                sys.settrace(None)
            self._is_on = False

    def caller(self, frame: Any) -> Line | None:
        """The line of the program that runs in `frame`, or that has called it; None if the next
        lines there are not reported.
        """
        return _caller(frame, self._is_followed)

    def leave_out(self, code: Any) -> None:
        """Follow the lines of a function no more, only that it begins."""
        self._left_out.add(id(code))

    def _is_followed(self, code: Any) -> bool:
        return id(code) not in self._left_out and _is_traced(code)

    def is_in_callback(self) -> bool:
        """Return True if this is called by the trace function: by a signal handler meanwhile."""
        at: Any = sys._getframe()
        while at is not None and at.f_code is not self._function.__code__:
            at = at.f_back
        return at is not None

    def rest(self) -> None:
        """Pause at the end of a step, where no trace function runs."""
        self.pause()
        plain_access.is_tracing = False

    def close(self) -> bool:
        """Trace no more. Returns False if it has to be called again, later."""
        self._is_closed = True
        self.pause()
        is_on = self._is_on and self._thread in sys._current_frames()
        # Not from within a trace function: Python would delete the variables of its caller.
        if is_on or _runs(self._function.__code__):
            return False
        plain_access.is_tracing = False
        for frame in running_frames() + self._suspended_frames():
            if frame.f_trace is self._function:
                frame.f_trace = None
            locals_of(frame)  # empties the dictionary that tracing leaves
        if plain_access.own_trace is self._function:
            plain_access.own_trace = None
        return True

    def _suspended_frames(self) -> list[Any]:
        """Frames of generators, none if none was traced: it takes 0.1 s beside torch."""
        if not self._flags & _SUSPENDED:
            return []
        generators = objects_of(frozenset(map(id, GENERATORS)))
        return [frame for one in generators if (frame := generator_frame(one)) is not None]

    def _trace_function(self) -> Callable[..., Any]:
        libraries, trace, calls = self._libraries, self._trace, itertools.count(1).__next__

        def traced(frame: Any, event: str, argument: Any) -> Any:
            try:
                if event == "call" and frame.f_code.co_filename in libraries:
                    if calls() & _MANY_CALLS == 0:
                        self._on_calls(_MANY_CALLS + 1)
                    return None
                return trace(frame, event)
            except ours(Exception):
                self._on_error()
                return None

        return traced

    def _trace(self, frame: Any, event: str) -> Any:
        code = frame.f_code
        if self._is_closed:
            self.pause()
            return None
        if event == "call" and not is_users(code.co_filename):
            self._libraries.add(code.co_filename)
            return None
        if not self._is_followed(code):
            frame.f_trace = None  # (what is returned counts at calls only)
            self._on_line(frame, None, True)
            return None
        if event == "call":
            self._flags |= code.co_flags
        if event == "return":
            self._on_line(frame, self.caller(frame.f_back), True)
        elif event != "exception":
            self._on_line(frame, (code, frame.f_lineno), True)
        return self._function


def _time_of_calls() -> float:
    """Seconds of one call of a function, the least of some trials."""
    trials = []
    for _ in range(_TRIALS):
        began_s = perf_counter()
        for _ in range(_CALLS):
            _nothing()
        trials.append((perf_counter() - began_s) / _CALLS)
    return min(trials)


def _nothing() -> None:
    """Return at once."""


def _guarded(function: Callable[..., Any], on_error: Callable[[], None]) -> Callable[..., Any]:
    """Keep our exceptions out of the program."""

    def guarded(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ours(Exception):
            on_error()
            return None

    return guarded


def _is_traced(code: Any) -> bool:
    """Return True for functions of the program, unless they may hold their local variables'
    dictionary, which a trace function changes.
    """
    return is_users(code.co_filename) and (code.co_name == "<module>" or not uses_locals(code))


def _caller(frame: Any, is_followed: Callable[[Any], bool]) -> Line | None:
    """The line of the program that runs in `frame`, or that has called it through libraries.

    None if the next lines there are not reported.
    """
    at = frame
    while at is not None:
        code = at.f_code
        if is_users(code.co_filename):
            return (code, at.f_lineno) if is_followed(code) else None
        at = at.f_back
    return None


def _runs(code: Any) -> bool:
    """Return True if a function is running in some thread."""
    at: Any = None
    for top in list(sys._current_frames().values()):
        at = top
        while at is not None and at.f_code is not code:
            at = at.f_back
        if at is not None:
            break
    is_found = at is not None
    del top, at  # a frame that refers to itself would stay
    return is_found


def program_codes() -> list[Any]:
    """The code of the program's functions: of its modules, and of what runs."""
    found: dict[int, Any] = {}
    for frame in running_frames():
        _add(frame.f_code, found)
    for name, module in list(sys.modules.items()):
        if type(module) is types.ModuleType and (
            name == "__main__" or is_users(module_file(module) or "<")
        ):
            for value in list(module_attributes(module).values()):
                _add_all(value, found)
    return list(found.values())


def _add_all(value: Any, found: dict[int, Any]) -> None:
    """Add the code of a function, or of the functions of a class."""
    if issubclass(type(value), type):
        for _, one in class_attributes(value):
            _add_function(one, found)
    else:
        _add_function(value, found)


def _add_function(value: Any, found: dict[int, Any]) -> None:
    todo = [value]
    for one in todo:  # the list grows in the loop
        kind = type(one)
        if kind is types.FunctionType:
            _add(one.__code__, found)
            if len(todo) < _MOST_WRAPPERS:  # a decorator holds what it wraps
                todo += [cell.cell_contents for cell in one.__closure__ or () if _is_set(cell)]
        elif kind in (staticmethod, classmethod):
            todo.append(one.__func__)
        elif kind is property:
            todo += [one.fget, one.fset]
        elif kind is functools.partial:
            todo.append(one.func)
        elif plain_access.is_cache(kind):
            todo.append(one.__dict__.get("__wrapped__"))


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ours(ValueError):
        return False


def _add(code: Any, found: dict[int, Any]) -> None:
    """Add a function's code, with those of the functions in it."""
    todo = [code] if is_users(code.co_filename) else []
    while todo and len(found) < _MOST_CODES:
        one = todo.pop()
        if id(one) not in found:
            found[id(one)] = one
            todo += [inner for inner in one.co_consts if type(inner) is types.CodeType]

"""Counts the iterations of loops that samples of the stacks have found (Python 3.12 and later).

`sys.monitoring` reports the jumps of watched functions only: nothing else gets slower. A function
is watched if the same call of it is on a stack in two consecutive samples, the outermost first.
After an iteration of a loop its callees are new calls, even if the frames have the same addresses.
Only code, position and identity of a frame are read; no frame is kept.
"""

from __future__ import annotations

import opcode
import sys
from _thread import get_ident
from time import monotonic

from .guard import ours
from .loops import ENDED_AFTER_S, LIBRARY, OWN, Loop, is_package, is_standard_library
from .main_thread import raise_soon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable

# Python reserves 0, 1, 2 and 5 for debuggers, coverage, profilers and optimizers.
TOOLS = (4, 3)
_NAME = "memdiag"
# Limits of the watched functions, of those in libraries, and of the recorded ones. Heuristic.
_MAX_FUNCTIONS, _MAX_LIBRARY_FUNCTIONS, _MAX_FOUND = 64, 32, 4096
# First and longest time until a function with too short iterations is watched again. Heuristic.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_UNKNOWN_DEPTH = 999
_JUMP = opcode.opmap.get("JUMP_BACKWARD", -1)
# Targets of the jumps back of `for` and `async for`: such loops have one head.
_ONE_HEAD = frozenset((opcode.opmap.get("FOR_ITER"), opcode.opmap.get("GET_ANEXT")))
_IMPORT = "<frozen importlib"


def monitoring() -> Any:
    """`sys.monitoring`, or None if this Python has none or runs without the GIL."""
    has_gil = getattr(sys, "_is_gil_enabled", None)
    if has_gil is not None and not has_gil():
        return None
    return getattr(sys, "monitoring", None)


def open_tool() -> LoopEvents | None:
    """Take a tool id of `sys.monitoring`. Returns None if there is none, or none is free."""
    module = monitoring()
    if module is None or _JUMP < 0:
        return None
    for tool in TOOLS:
        if module.get_tool(tool) is None:
            module.use_tool_id(tool, _NAME)
            return LoopEvents(module, tool)
    return None


class _Watched:
    """A watched function."""

    __slots__ = ("code", "depth", "pause_s", "retry_s", "thread")

    def __init__(self, code: CodeType, depth: int, thread: int) -> None:
        self.code, self.depth, self.thread = code, depth, thread
        self.retry_s, self.pause_s = monotonic() + _FIRST_PAUSE_S, 2 * _FIRST_PAUSE_S


class LoopEvents:
    """The loops of the watched functions, by function and head.

    counts_by_itself: iterations are counted between samples.
    """

    counts_by_itself = True

    def __init__(self, module: Any, tool: int) -> None:
        self._module, self._tool = module, tool
        self.loops: dict[tuple[int, int], Loop] = {}
        self._watched: dict[int, _Watched] = {}  # (hashing a code object reads its bytecode)
        self._previous: set[tuple[int, int]] = set()
        self._found: list[tuple[CodeType, int]] = []
        self._finds_functions = False
        events = module.events
        module.register_callback(tool, events.JUMP, self._jumped())
        for event in (events.PY_START, events.PY_RESUME):
            module.register_callback(tool, event, self._started)

    def close(self) -> None:
        """Remove all events and callbacks, and free the tool id."""
        module, tool = self._module, self._tool
        try:
            module.set_events(tool, 0)
            # One by one: Python 3.12 would keep them for the next owner of the tool id.
            while self._watched:
                module.set_local_events(tool, self._watched.popitem()[1].code, 0)
        finally:
            for event in (module.events.JUMP, module.events.PY_START, module.events.PY_RESUME):
                module.register_callback(tool, event, None)
            module.free_tool_id(tool)
            self.loops.clear()
            self._found.clear()

    # -- called in the program's threads -------------------------------------------------------

    def _jumped(self) -> Callable[[CodeType, int, int], Any]:
        loops, new, identity, disable = self.loops, self._new, get_ident, self._module.DISABLE

        def jumped(code: CodeType, offset: int, head: int) -> Any:
            try:
                if head >= offset:
                    return disable  # forward
                loop = loops.get((id(code), head)) or new(code, head)
                if loop is None or loop.is_hot:
                    return disable
                if loop.thread != identity():
                    return None
                if offset > loop.end:  # noqa: PLR1730 (twice as fast)
                    loop.end = offset
                return disable if (loop.into or loop).count(monotonic()) else None
            except ours(Exception):
                return disable
            except BaseException as error:
                # Python 3.12 and 3.13 do not find the `try` block around the jump.
                if not raise_soon(error):
                    raise
                return None

        return jumped

    def _new(self, code: CodeType, head: int) -> Loop | None:
        watched = self._watched.get(id(code))
        if watched is None:
            return None
        owner = LIBRARY if is_package(code) else OWN
        loop = Loop(code, head, watched.depth, watched.thread, owner)
        return self.loops.setdefault((id(code), head), loop)

    def _started(self, code: CodeType, _: int) -> Any:
        try:
            if len(self._found) < _MAX_FOUND:
                self._found.append((code, get_ident()))
        except ours(Exception):
            return self._module.DISABLE
        return self._module.DISABLE

    # -- called in the probe's thread ----------------------------------------------------------

    def sample(self) -> None:
        """Sample all stacks: watch the functions that stay on them, and update the known loops."""
        now_s, own = monotonic(), get_ident()
        seen: set[tuple[int, int]] = set()
        for thread, frame in sys._current_frames().items():
            if thread != own:
                self._check_stack(_calls(frame), thread, seen, now_s)
        del frame
        self._previous = seen
        if self._finds_functions:
            self._watch_found()

    def find_functions(self) -> None:
        """Watch all functions of the program that run until the next sample.

        It finds coroutines, which are on no stack while they wait.
        """
        events = self._module.events
        self._finds_functions = True
        self._module.set_events(self._tool, events.PY_START | events.PY_RESUME)

    @staticmethod
    def has_one_head(loop: Loop) -> bool:
        """Return True if the loop is a `for`."""
        return loop.code.co_code[loop.head] in _ONE_HEAD

    def _check_stack(
        self,
        calls: list[tuple[CodeType, int, int]],
        thread: int,
        seen: set[tuple[int, int]],
        now_s: float,
    ) -> None:
        importing, may_watch = False, True
        for depth, (code, at, call) in enumerate(calls):
            importing = importing or code.co_filename.startswith(_IMPORT)
            if is_standard_library(code) or (importing and is_package(code)):
                continue
            key = id(code)
            seen.add((key, call))
            watched = self._watched.get(key)
            if watched is not None:
                watched.depth = min(depth, watched.depth)
                may_watch = self._update_loops(watched, at, thread, now_s) and may_watch
            elif may_watch and (key, call) in self._previous:
                may_watch = not self._watch(code, depth, thread)

    def _update_loops(self, watched: _Watched, at: int, thread: int, now_s: float) -> bool:
        """Update the loops of a function that is at instruction `at`.

        Return True if its callees may still be those of the previous sample.
        """
        is_same = True
        loops = [loop for loop in list(self.loops.values()) if loop.code is watched.code]
        for loop in loops:
            loop.depth = watched.depth
            went_round, loop.n_before = loop.n != loop.n_before, loop.n
            if loop.head <= at <= loop.end:
                if loop.owner == OWN and (went_round or loop.is_hot):
                    is_same = False
                if loop.thread == thread:
                    (loop.into or loop).active_s = now_s
                elif now_s - loop.seen_s() > ENDED_AFTER_S:
                    loop.thread = thread  # its thread has ended
        hot = [loop for loop in loops if loop.is_hot]
        if hot and now_s >= watched.retry_s:
            watched.retry_s = now_s + watched.pause_s
            watched.pause_s = min(2 * watched.pause_s, _LONGEST_PAUSE_S)
            for loop in hot:
                loop.is_hot, loop.short, loop.window_s = False, 0, 0.0
            self._enable(watched.code)
        return is_same

    def _watch(self, code: CodeType, depth: int, thread: int) -> bool:
        """Watch a function if it has a loop. Return True if it is watched from now on."""
        most = _MAX_LIBRARY_FUNCTIONS if is_package(code) else _MAX_FUNCTIONS
        if id(code) in self._watched or len(self._watched) >= most:
            return False
        if _JUMP not in code.co_code[::2]:
            return False
        self._watched[id(code)] = _Watched(code, depth, thread)
        self._enable(code)
        return True

    def _enable(self, code: CodeType) -> None:
        # Off and on: this enables again what was disabled, only for this tool.
        self._module.set_local_events(self._tool, code, 0)
        self._module.set_local_events(self._tool, code, self._module.events.JUMP)

    def _watch_found(self) -> None:
        self._finds_functions = False
        self._module.set_events(self._tool, 0)
        while self._found:
            code, thread = self._found.pop()
            if not is_standard_library(code) and not is_package(code):
                self._watch(code, _UNKNOWN_DEPTH, thread)


def _calls(frame: FrameType | None) -> list[tuple[CodeType, int, int]]:
    """Code, position and identity of each frame, the outermost first."""
    calls = []
    while frame is not None:
        calls.append((frame.f_code, frame.f_lasti, id(frame)))
        frame = frame.f_back
    calls.reverse()
    return calls

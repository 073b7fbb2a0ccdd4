"""Counts the jumps back of loops that samples of the stacks have found (Python 3.12 and later).

`sys.monitoring` tells of jumps in chosen functions alone: nothing else is slowed. A function is
chosen when one and the same call of it is on a stack in two samples in a row, the outermost first:
what a loop that went round has called is another call, even if it has the same address. Of frames
only code, position and identity are read; none is kept.
"""

from __future__ import annotations

import opcode
import sys
from _thread import get_ident
from time import monotonic

from .loops import LIBRARY, OWN, QUIET_S, Loop, is_package, is_standard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable

# 0, 1, 2 and 5 have owners: debuggers, coverage, profilers, optimizers.
_TOOLS = (4, 3)
_NAME = "memdiag"
# So many functions are watched at most, and of libraries so many. Chosen.
_MOST, _MOST_OF_LIBRARIES, _MOST_FOUND = 64, 32, 4096
# A function whose loops were too short is tried again after so long, at last.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_UNKNOWN_DEPTH = 999
_JUMP = opcode.opmap.get("JUMP_BACKWARD", -1)
# What a `for` and an `async for` jump back to: such loops have one head.
_ONE_HEAD = frozenset((opcode.opmap.get("FOR_ITER"), opcode.opmap.get("GET_ANEXT")))
_IMPORT = "<frozen importlib"


def monitoring() -> Any:
    """`sys.monitoring`, None where there is none or threads run beside each other."""
    has_lock = getattr(sys, "_is_gil_enabled", None)
    if has_lock is not None and not has_lock():
        return None
    return getattr(sys, "monitoring", None)


def begin() -> LoopEvents | None:
    """Take a tool's place in `sys.monitoring`. None where there is none or all are taken."""
    module = monitoring()
    if module is None or _JUMP < 0:
        return None
    for tool in _TOOLS:
        if module.get_tool(tool) is None:
            module.use_tool_id(tool, _NAME)
            return LoopEvents(module, tool)
    return None


class _Armed:
    """A function that is watched."""

    __slots__ = ("again_s", "code", "depth", "pause_s", "thread")

    def __init__(self, code: CodeType, depth: int, thread: int) -> None:
        self.code, self.depth, self.thread = code, depth, thread
        self.again_s, self.pause_s = monotonic() + _FIRST_PAUSE_S, 2 * _FIRST_PAUSE_S


class LoopEvents:
    """The loops of the functions that are watched, by function and head."""

    def __init__(self, module: Any, tool: int) -> None:
        self._module, self._tool = module, tool
        self.loops: dict[tuple[int, int], Loop] = {}
        self._armed: dict[int, _Armed] = {}  # (a code object's own hash runs over its bytecode)
        self._before: set[tuple[int, int]] = set()
        self._found: list[tuple[CodeType, int]] = []
        self._sweeps = False
        events = module.events
        module.register_callback(tool, events.JUMP, self._jumped())
        for event in (events.PY_START, events.PY_RESUME):
            module.register_callback(tool, event, self._started)

    def close(self) -> None:
        """Leave nothing of ours behind, in this process."""
        module, tool = self._module, self._tool
        try:
            module.set_events(tool, 0)
            # One by one: Python 3.12 leaves them to whoever takes the tool next.
            while self._armed:
                module.set_local_events(tool, self._armed.popitem()[1].code, 0)
        finally:
            for event in (module.events.JUMP, module.events.PY_START, module.events.PY_RESUME):
                module.register_callback(tool, event, None)
            module.free_tool_id(tool)
            self.loops.clear()
            self._found.clear()

    # -- what the program's threads call -------------------------------------------------------

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
                loop = loop.into or loop
            except Exception:
                return disable
            # (Not inside of the guard: a signal handler of the program may raise in there.)
            return disable if loop.count(monotonic()) else None

        return jumped

    def _new(self, code: CodeType, head: int) -> Loop | None:
        armed = self._armed.get(id(code))
        if armed is None:
            return None
        owner = LIBRARY if is_package(code) else OWN
        loop = Loop(code, head, armed.depth, armed.thread, owner)
        return self.loops.setdefault((id(code), head), loop)

    def _started(self, code: CodeType, _: int) -> Any:
        try:
            if len(self._found) < _MOST_FOUND:
                self._found.append((code, get_ident()))
        except Exception:
            return self._module.DISABLE
        return self._module.DISABLE

    # -- what the probe's thread calls ---------------------------------------------------------

    def sample(self) -> None:
        """Look at all stacks."""
        now_s, own = monotonic(), get_ident()
        seen: set[tuple[int, int]] = set()
        for thread, frame in sys._current_frames().items():
            if thread != own:
                self._look_at(_calls(frame), thread, seen, now_s)
        del frame
        self._before = seen
        if self._sweeps:
            self._end_sweep()

    def sweep(self) -> None:
        """Look at every function of the program's own that runs until the next sample.

        A coroutine is on no stack while it waits.
        """
        events = self._module.events
        self._sweeps = True
        self._module.set_events(self._tool, events.PY_START | events.PY_RESUME)

    @staticmethod
    def has_one_head(loop: Loop) -> bool:
        """Return True if it is a `for`."""
        return loop.code.co_code[loop.head] in _ONE_HEAD

    def _look_at(
        self,
        calls: list[tuple[CodeType, int, int]],
        thread: int,
        seen: set[tuple[int, int]],
        now_s: float,
    ) -> None:
        importing, may_arm = False, True
        for depth, (code, at, call) in enumerate(calls):
            importing = importing or code.co_filename.startswith(_IMPORT)
            if is_standard(code) or (importing and is_package(code)):
                continue
            key = id(code)
            seen.add((key, call))
            armed = self._armed.get(key)
            if armed is not None:
                armed.depth = min(depth, armed.depth)
                may_arm = self._is_inside(armed, at, thread, now_s) and may_arm
            elif may_arm and (key, call) in self._before:
                may_arm = not self._arm(code, depth, thread)

    def _is_inside(self, armed: _Armed, at: int, thread: int, now_s: float) -> bool:
        """Return True if what it calls may still be what it called at the sample before."""
        is_still = True
        loops = [loop for loop in list(self.loops.values()) if loop.code is armed.code]
        for loop in loops:
            loop.depth = armed.depth
            went_round, loop.n_before = loop.n != loop.n_before, loop.n
            if loop.head <= at <= loop.end:
                if loop.owner == OWN and (went_round or loop.is_hot):
                    is_still = False
                if loop.thread == thread:
                    (loop.into or loop).active_s = now_s
                elif now_s - loop.seen_s() > QUIET_S:
                    loop.thread = thread  # the thread that ran it has ended
        hot = [loop for loop in loops if loop.is_hot]
        if hot and now_s >= armed.again_s:
            armed.again_s = now_s + armed.pause_s
            armed.pause_s = min(2 * armed.pause_s, _LONGEST_PAUSE_S)
            for loop in hot:
                loop.is_hot, loop.short, loop.window_s = False, 0, 0.0
            self._enable(armed.code)
        return is_still

    def _arm(self, code: CodeType, depth: int, thread: int) -> bool:
        """Watch a function, if there is a loop in it. Return True if it is watched from now on."""
        most = _MOST_OF_LIBRARIES if is_package(code) else _MOST
        if id(code) in self._armed or len(self._armed) >= most:
            return False
        if _JUMP not in code.co_code[::2]:
            return False
        self._armed[id(code)] = _Armed(code, depth, thread)
        self._enable(code)
        return True

    def _enable(self, code: CodeType) -> None:
        # Off and on: that brings back what was disabled, of ours alone.
        self._module.set_local_events(self._tool, code, 0)
        self._module.set_local_events(self._tool, code, self._module.events.JUMP)

    def _end_sweep(self) -> None:
        self._sweeps = False
        self._module.set_events(self._tool, 0)
        while self._found:
            code, thread = self._found.pop()
            if not is_standard(code) and not is_package(code):
                self._arm(code, _UNKNOWN_DEPTH, thread)


def _calls(frame: FrameType | None) -> list[tuple[CodeType, int, int]]:
    """Code, position and identity of each frame, the outermost first."""
    calls = []
    while frame is not None:
        calls.append((frame.f_code, frame.f_lasti, id(frame)))
        frame = frame.f_back
    calls.reverse()
    return calls

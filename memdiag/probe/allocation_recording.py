"""Records for a few steps where memory is allocated that stays in use: the last resort.

Where no name of the program leads to what grows, the lines that allocate it are all that can be
named: the lines of the program by the bytes that they have in use at one step and at one some steps
later. Tensors of a CPU are seen by a mode of torch that every operation goes through, what Python
and numpy allocate by `tracemalloc`, and memory of a GPU by the history of torch's allocator.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from time import monotonic, thread_time

from .allocation_tracing import AllocationTracing
from .device_snapshot import DeviceSnapshot
from .guard import ours
from .program_code import is_users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Tuple

    # File, line and function of the program, and what is in use there: the kind and the bytes.
    Line = Tuple[str, int, str]
    InUse = Dict[Line, int]

# What steps leave is compared over so many of them; the steps before fill what is made anew in each
# step. Heuristic: what the last step has made is freed by the next.
_BEFORE_STEPS, STEPS = 2, 4
LONGEST_S = 30.0
# Steps may take this many times as long, beyond a first time. The bar is 8 times.
_MOST_TIMES, _FREE_S = 6.0, 0.01
# Storages and traces that are followed. Heuristic: some MB.
_MOST_STORAGES, _MOST_TRACE_BYTES = 20_000, 16 << 20
# Further storages after which those that were freed are forgotten: what is left of one in malloc
# lies between larger blocks, which cannot become one then. Heuristic: with all 1,500 of a step, the
# heap of a small transformer grew by 12 to 34 MB per step.
_FORGET_EVERY = 64
_MOST_DEPTH, _TRACED_FRAMES = 60, 12
_MOST_LINES = 12
_HISTORY_ENTRIES = 1  # of allocations that have ended: they are not of interest


class AllocationRecording:
    """One recording, in the thread of the steps. No method raises."""

    def __init__(self, step_s: float, *, is_host: bool, is_device: bool) -> None:
        """step_s: how long steps take. is_host, is_device: which memory grows."""
        self._step_s = step_s
        self._thread = get_ident()
        self._began_s = monotonic()
        self._steps = 0
        self._before: list[InUse] = []
        self.is_closed = False
        self.failed = False
        # (kind, file, line, function, bytes per step), the largest first.
        self.found: list[tuple[str, str, int, str, float]] = []
        self._recorders: list[Any] = []
        recorders: Any = (Tensors, Traces) * is_host + (DeviceHistory,) * is_device
        for recorder in recorders:
            try:
                self._recorders.append(recorder(self.is_too_slow))
            except ours(Exception):
                continue  # not supported, or in use by the program
        if not self._recorders:
            self.is_closed = True
        self._step_began_s = thread_time()  # without what beginning takes

    def is_too_slow(self) -> bool:
        """Return True if this step has taken too much CPU time, or all of it too long."""
        longest_s = _FREE_S + _MOST_TIMES * self._step_s
        is_slow = thread_time() - self._step_began_s > longest_s
        return is_slow or self.is_overdue()

    def is_overdue(self) -> bool:
        """Return True if its time is over: it ends with the next step."""
        return monotonic() - self._began_s > LONGEST_S

    def at_step(self) -> None:
        """A step has ended."""
        if self.is_closed or get_ident() != self._thread:
            return
        try:
            self._steps += 1
            if self._steps == _BEFORE_STEPS:
                self._before = [one.in_use() for one in self._recorders]
            elif self._steps == _BEFORE_STEPS + STEPS:
                self._compare()
                self.close()
            if any(one.is_over() for one in self._recorders) or self.is_too_slow():
                self.close()
        except ours(Exception):
            self.failed = True
            self.close()
        self._step_began_s = thread_time()

    def check(self) -> None:
        """End what can be ended in any thread if the time is over."""
        for one in self._recorders:
            try:
                if one.is_over() or self.is_overdue():
                    one.pause()
            except ours(Exception):
                self.failed = True

    def close(self) -> None:
        """End it, and undo everything."""
        if get_ident() != self._thread:
            self.check()
            return
        self.is_closed = True
        self._before = []
        for one in self._recorders:
            try:
                one.close()
            except ours(Exception):
                self.failed = True
        self._recorders = []

    def after_fork_in_child(self) -> None:
        """End it in a forked child, whose only thread may be that of the steps."""
        self.close()
        self.is_closed = True

    def _compare(self) -> None:
        for one, before in zip(self._recorders, self._before):
            if one.is_over():
                continue
            for line, size in one.in_use().items():
                grown = size - before.get(line, 0)
                if grown > 0:
                    self.found.append((one.kind, *line, grown / STEPS))
        self.found.sort(key=lambda row: -row[-1])
        del self.found[_MOST_LINES:]


class Tensors:
    """What torch's operations allocate on the CPU, by storages that are still in use.

    A mode beneath all others: every operation of this thread goes through it and is done unchanged.
    Raises if the program is in a state in which this could change what it computes.
    """

    kind = "tensors"

    def __init__(self, is_too_slow: Callable[[], bool]) -> None:
        torch: Any = sys.modules["torch"]
        _check_torch(torch)
        modes: Any = sys.modules["torch.utils._python_dispatch"]
        recorder = self
        self._is_too_slow = is_too_slow
        self._is_active = True
        self._storages: dict[int, tuple[int, int, Line | None]] = {}
        self._most_before = _FORGET_EVERY
        self._allocates: dict[int, tuple[Any, bool]] = {}
        self._tensor, self._storage = torch.Tensor, torch.UntypedStorage
        self._parameter = torch.nn.Parameter

        base: Any = modes.TorchDispatchMode

        class Mode(base):  # type: ignore[misc]
            """Does what is asked, and looks at what it gave."""

            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                result = func(*args, **(kwargs or {}))
                try:
                    if recorder._is_active:
                        recorder.saw(func, result)
                except ours(Exception):
                    recorder._is_active = False
                return result

        self._modes = modes
        self._mode = Mode()
        self._modes._push_mode(self._mode)

    def saw(self, func: Any, result: Any) -> None:
        """An operation of torch has given a result."""
        known = self._allocates.get(id(func))
        if known is None:
            returns = func._schema.returns
            known = func, bool(returns) and all(one.alias_info is None for one in returns)
            self._allocates[id(func)] = known
        if not known[1]:
            return  # a view, or in place
        if len(self._storages) >= _MOST_STORAGES or self._is_too_slow():
            self.pause()
            return
        line = _own_line(sys._getframe(2))
        for one in result if type(result) in (tuple, list) else (result,):
            if type(one) in (self._tensor, self._parameter) and one.device.type == "cpu":
                self._follow(one.untyped_storage(), line)

    def _follow(self, storage: Any, line: Line | None) -> None:
        weak = storage._weak_ref()
        if weak in self._storages:
            self._storage._free_weak_ref(weak)
            return
        if len(self._storages) >= self._most_before:
            self._forget_freed()
            self._most_before = len(self._storages) + _FORGET_EVERY
        self._storages[weak] = weak, storage.nbytes(), line

    def _forget_freed(self) -> None:
        for weak in [one for one in self._storages if self._storage._expired(one)]:
            del self._storages[weak]
            self._storage._free_weak_ref(weak)

    def in_use(self) -> InUse:
        self._forget_freed()
        found: InUse = {}
        for _, size, line in self._storages.values():
            if line is not None:
                found[line] = found.get(line, 0) + size
        return found

    def is_over(self) -> bool:
        return not self._is_active

    def pause(self) -> None:
        self._is_active = False

    def close(self) -> None:
        """Take the mode away, from beneath those of the program as well."""
        self._is_active = False
        above = []
        while self._modes._get_current_dispatch_mode() is not None:
            mode = self._modes._pop_mode()
            if mode is self._mode:
                break
            above.append(mode)
        for mode in reversed(above):
            self._modes._push_mode(mode)
        for weak in self._storages:
            self._storage._free_weak_ref(weak)
        self._storages.clear()


def _check_torch(torch: Any) -> None:
    """Raise where a mode of torch could make the program compute otherwise."""
    core = torch._C
    # (The mode would import it otherwise: a second, and tens of MB. Optimizers do.)
    dynamo: Any = sys.modules["torch._dynamo.utils"]
    distributed: Any = sys.modules.get("torch.distributed")
    functions: Any = core._functorch
    if (
        core._len_torch_dispatch_stack()
        or core._len_torch_function_stack()
        or dynamo.counters.get("frames")
        or torch.cuda.is_initialized()
        or (distributed is not None and distributed.is_available() and distributed.is_initialized())
        or functions.peek_interpreter_stack() is not None
        or torch.is_inference_mode_enabled()
    ):
        raise RuntimeError


class Traces:
    """What Python's allocators and numpy allocate, by `tracemalloc`. Raises if it is in use."""

    kind = "native"

    def __init__(self, is_too_slow: Callable[[], bool]) -> None:
        self._is_too_slow = is_too_slow
        self._tracing = AllocationTracing(_TRACED_FRAMES)
        self._module = self._tracing.module
        self._is_ours = True

    def in_use(self) -> InUse:
        found: InUse = {}
        for trace in self._module.take_snapshot().traces:
            # The innermost frame is the last.
            frames = [(one.filename, one.lineno, "") for one in reversed(trace.traceback)]
            _add(found, frames, trace.size)
        return found

    def is_over(self) -> bool:
        if self._is_ours and self._module.get_tracemalloc_memory() > _MOST_TRACE_BYTES:
            self.close()
        return not self._is_ours or not self._module.is_tracing()

    def pause(self) -> None:
        self.close()

    def close(self) -> None:
        if self._is_ours:
            self._is_ours = False
            self._tracing.stop()


class DeviceHistory:
    """Memory of GPUs, by the history of torch's allocator. Raises if the program records one."""

    kind = "device"

    def __init__(self, is_too_slow: Callable[[], bool]) -> None:
        torch: Any = sys.modules["torch"]
        self._memory = torch.cuda.memory
        if not torch.cuda.is_initialized():
            raise RuntimeError
        self._is_open = True
        self._is_ours = not torch._C._cuda_isHistoryEnabled()
        if self._is_ours:
            self._memory._record_memory_history(
                enabled="state", context="state", stacks="python", max_entries=_HISTORY_ENTRIES
            )
        elif DeviceSnapshot.recording is None:
            raise RuntimeError

    def in_use(self) -> InUse:
        found: InUse = {}
        for segment in self._memory._snapshot()["segments"]:
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    at = block.get("frames", ())
                    frames = [(one["filename"], one["line"], one["name"]) for one in at]
                    _add(found, frames, block["size"])
        return found

    def is_over(self) -> bool:
        return not self._is_open

    def pause(self) -> None:
        self.close()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            if self._is_ours:
                self._memory._record_memory_history(enabled=None)


def _add(found: InUse, frames: list[Line], size: int) -> None:
    """Add what was allocated on a stack to the innermost line of the program.

    frames: the innermost first.
    """
    for file, number, function in frames:
        if file.startswith(_OURS):
            return  # what the recording itself takes
        if is_users(file):
            line = os.path.abspath(file), number, function  # noqa: PTH100
            found[line] = found.get(line, 0) + size
            return


def _own_line(frame: Any) -> Line | None:
    """The innermost line of the program on a stack."""
    for _ in range(_MOST_DEPTH):
        if frame is None:
            return None
        code = frame.f_code
        if is_users(code.co_filename):
            name = getattr(code, "co_qualname", code.co_name)
            return os.path.abspath(code.co_filename), frame.f_lineno, name  # noqa: PTH100
        frame = frame.f_back
    return None


# How the names of the probe's source files begin.
_OURS = _own_line.__code__.co_filename.rpartition("allocation_recording")[0]

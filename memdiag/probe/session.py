"""The probe's state in one process: turns tags and hooks into records, starts anew after a fork.

Every public method is called from the program's own threads, hooks or signal handlers. None
raises (except what a signal handler of the program raises), waits, or takes a lock.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from math import isfinite
from operator import index
from time import monotonic, thread_time

from . import ring_format
from .collector import OwnObjects
from .framework_allocators import packed
from .guard import never_raises, ours
from .multiprocessing_role import multiprocessing_role, on_worker_exit
from .oom_at_exit import out_of_memory
from .process_identity import UNNAMED_CHILD, ProcessIdentity, ranks
from .ring_format import ABSENT
from .ring_writer import Ring
from .schedule import MetricSchedule
from .step_state import StepState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_pack = ring_format.READING.pack
_THREAD_MASK = 0xFFFFFFFF
_MIN_STEP, _MAX_STEP = ring_format.NO_STEP + 1, (1 << 63) - 1
# The counter that records epochs, both the probe's and the program's own.
EPOCH = "epoch"
# After this many failed writes in a row the ring is abandoned: its disk is full or gone.
_PATIENCE = 3
_LONGEST_REASON = 60
_NOTHING = ring_format.NO_VALUE, ring_format.NO_READINGS
# Heuristic: programs tag a step after each iteration, or after an epoch of hundreds.
_GRACE_STEPS = 200
_AUTO_STEP, _BEAT = ring_format.STEP | ring_format.AUTO, ring_format.SAMPLE | ring_format.AUTO
_WORK = ring_format.WORK | ring_format.AUTO
_LOOP_STEP = _AUTO_STEP | ring_format.LOOP
_CUDA = "vram"  # of ring_format.ALLOCATORS
_WITH_STEPS = {"allocated_bytes": ABSENT, "reserved_bytes": ABSENT}


def _counts_failures(method: F) -> F:
    """Count an exception of a method of Session as a failure, instead of raising it."""

    def guarded(self: Session, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except ours(Exception) as error:
            self._failed(error)

    return guarded  # type: ignore[return-value]


class Session:
    """The probe's state in this process and, after a fork, in the child."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._closed = False
        self.own_objects = OwnObjects()
        self.step_state = StepState()
        self.schedule = MetricSchedule(self.note, self.step_state)
        # Rings of the parents. An old mapping holds a descriptor number that the program may have
        # reused for a file of its own: it must never be closed.
        self._kept: list[Ring] = []
        self.after_step: Callable[[], None] | None = None
        self.at_out_of_memory: Callable[[], None] | None = None
        self.at_end: Callable[[], None] | None = None
        self.take_census: Callable[[], None] | None = None
        self.follow_pressure: Callable[[], None] | None = None
        self.under_pressure: Callable[[], None] | None = None
        self.model_bytes: Callable[[], int] = int  # of what is trained, 0 if unknown
        self.batch_bytes: Callable[[], int] = int
        self._begin(_main_thread())

    def _begin(self, main_thread: int) -> None:
        self._main_thread = main_thread
        self._ring: Ring | None = None
        self._failures = 0
        self._step = ring_format.NO_STEP
        self._open: dict[int, list[str]] = {}
        self._tags_steps = self._tags_phases = self._tags_epochs = False
        self._auto_phase = ""
        self._has_noted = self._is_over = False
        self._role_unknown = False
        self._ranks_written = (-1, -1, -1)
        self._steps = 0

    # -- tags of the program ---------------------------------------------------------------

    def step(self, n: object) -> None:
        """Step `n` has ended. Anything but an integer is ignored, with a note."""
        try:
            number = _whole(n)
            if number is None:
                self._note_once(f"step({n!r:.40}) was ignored: not an integer")
                return
            self._tags_steps = True
            self._step = number
            ring = self._ring
            if ring is not None and monotonic() < self.step_state.due_s:
                self._steps += 1
                ring.step(ring_format.STEP, self._thread(), number)
            else:
                self._end_step(ring_format.STEP)
        except ours(Exception) as error:
            self._failed(error)

    def phase_begin(self, name: object) -> None:
        """Phase `name` begins in this thread."""
        try:
            text = name if type(name) is str else str(name)
            if not self._tags_phases:
                self._tags_phases = True
                self.auto_phase("")
            stack = self._stack()
            stack.append(text)
            self._boundary(ring_format.PHASE_BEGIN, text, len(stack))
        except ours(Exception) as error:
            self._failed(error)

    def phase_end(self, name: object) -> None:
        """The innermost open phase `name` of this thread ends, and those inside it."""
        try:
            text = name if type(name) is str else str(name)
            stack = self._stack()
            if text not in stack:
                return  # it began before a fork, or in another thread
            while stack.pop() != text:
                pass
            self._boundary(ring_format.PHASE_END, text, len(stack))
        except ours(Exception) as error:
            self._failed(error)

    def counter(self, name: object, value: Any) -> None:
        """The program's counter `name` has `value`. Anything but a finite number is ignored."""
        try:
            number = float(value)
            if isfinite(number):
                text = name if type(name) is str else str(name)
                self._tags_epochs = self._tags_epochs or text == EPOCH
                self._write(ring_format.COUNTER, text, number)
        except ours(TypeError, ValueError, OverflowError):
            self._note_once(f"counter({name!r:.40}, ...) was ignored: its value is not a number")
        except ours(Exception) as error:
            self._failed(error)

    # -- events of the probe ---------------------------------------------------------------

    def auto_step(self, n: int, now_s: float) -> None:
        """A hook has seen the end of iteration `n`. Ignored if the program tags its steps."""
        try:
            self.step_state.by_loop = False
            self.step_state.reached = n
            if now_s < self.step_state.due_s and self._ring is not None:
                return  # the next record, of any kind, carries it
            if self._takes_reached():
                self._step = n
                self._end_step(_AUTO_STEP)
            else:
                self._pass_boundary()
        except ours(Exception) as error:
            self._failed(error)

    def loop_step(self, n: int, now_s: float) -> None:
        """Iteration `n` of a loop has ended. Ignored if another source reports steps."""
        try:
            state = self.step_state
            if not state.by_loop:
                if state.reached:
                    return
                state.by_loop = True
            state.reached = n
            if now_s < state.due_s:
                return
            if self._takes_reached():
                self._step = n
                self._end_step(_LOOP_STEP)
            else:
                self._pass_boundary()
        except ours(Exception) as error:
            self._failed(error)

    def has_better_steps(self) -> bool:
        """Return True if the program tags its steps or a framework reports them."""
        return self._tags_steps or (self.step_state.reached > 0 and not self.step_state.by_loop)

    @property
    def tags_steps(self) -> bool:
        """Return True if the program tags its steps."""
        return self._tags_steps

    def restart_steps(self) -> None:
        """Count from 1 again, for another source of steps."""
        self.catch_up()
        self.step_state.restart()

    @_counts_failures
    def catch_up(self) -> None:
        """Record the last iteration, if it waits for the next record."""
        if self._step != self.step_state.reached and self._takes_reached():
            self._write(self._auto_kind())

    @_counts_failures
    def auto_phase(self, name: str) -> None:
        """The phase is `name` from now on ("": none). Ignored if the program tags its phases."""
        if self._tags_phases:
            name = ""
        if name == self._auto_phase:
            return
        before, self._auto_phase = self._auto_phase, name
        if _is_part_of_a_step(before) and _is_part_of_a_step(name):
            readings = self.schedule.inside_step()
            self._write(ring_format.PHASE_BEGIN | ring_format.AUTO, name, 1, readings)
        elif name:
            self._boundary(ring_format.PHASE_BEGIN | ring_format.AUTO, name, 1)
        else:
            self._boundary(ring_format.PHASE_END | ring_format.AUTO, before, 0)

    @_counts_failures
    def auto_epoch(self, n: int) -> None:
        """Pass `n` over the data begins. Ignored if the program counts its epochs."""
        if not self._tags_epochs:
            self._write(ring_format.COUNTER | ring_format.AUTO, EPOCH, n)

    @_counts_failures
    def tensor_counts(self, readings: bytes) -> None:
        """Record a count of all objects, packed as ring_format.READING."""
        self._write(ring_format.TENSOR_COUNTS | ring_format.AUTO, readings=readings)

    @_counts_failures
    def note(self, text: str, metric: str = "") -> None:
        """Record why `metric` is missing, or another sentence for the report."""
        self._write(ring_format.NOTE, f"{metric}: {text}" if metric else text)

    @_counts_failures
    def beat(self) -> None:
        """Record the readings of this moment without a step, unless the program has ended, or a
        look in another thread has objects of its own, which take memory as well.
        """
        if not (self._is_over or self.own_objects.exist):
            self._measure(_BEAT)

    @_counts_failures
    def work_begins(self) -> None:
        """The program has imported its modules."""
        self._write(_WORK, value=1)

    @_counts_failures
    def record_exit(self) -> None:
        """Record the last readings at the program's end, and whether it ran out of memory."""
        self.catch_up()
        self._is_over = True
        found = out_of_memory()
        readings, values = self.schedule.at_end()
        if found is not None:
            text, about = found
            self._write(ring_format.OUT_OF_MEMORY | ring_format.AUTO, text, about, readings)
        self._write_allocators(values)
        self._write(_WORK, value=0)
        if found is not None and self.at_out_of_memory is not None:
            self.at_out_of_memory()
        if self.at_end is not None:
            self.at_end()

    @property
    def is_spawned(self) -> bool:
        """Return True in a child that multiprocessing has spawned, until it knows its task."""
        return self._role_unknown

    @property
    def main_thread(self) -> int:
        """Identity of the main thread."""
        return self._main_thread

    def is_main_thread_in(self, filename: str) -> bool:
        """Return True if a function of this source file is on the stack of the main thread."""
        frame = sys._current_frames().get(self._main_thread)
        while frame is not None:
            if frame.f_code.co_filename == filename:
                return True
            frame = frame.f_back
        return False

    @property
    def steps_recorded(self) -> tuple[int, int]:
        """A value that changes with every step."""
        return self._steps, self.step_state.reached

    def is_in_main_thread(self) -> bool:
        """Return True in the main thread of the program."""
        return get_ident() == self._main_thread

    def step_now(self) -> int:
        """The last step, ring_format.NO_STEP before the first."""
        return self.step_state.reached if self._takes_reached() else self._step

    def write_beside(self, data: bytes, suffix: str) -> None:
        """Replace the file of this suffix beside the ring. Raises OSError."""
        self._opened().write_beside(data, suffix)

    def ring_path(self) -> str:
        """The path of the ring of this process. Raises OSError."""
        return self._opened().path

    def take_request(self) -> str:
        """What memdiag asks for, once; "" for nothing. Raises OSError."""
        return "" if self._ring is None else self._ring.take_request()

    def take_pressure(self, level: str) -> bool:
        """Return True once after memory has reached this level. Raises OSError."""
        suffix = ring_format.PRESSURE_SUFFIXES[level]
        return self._ring is not None and bool(self._ring.take_request(suffix))

    def measure_next(self) -> None:
        """Measure the next step, and check all that is checked at such a step."""
        self.step_state.measure_next()

    def check_clock_next(self) -> None:
        """Have the next step check if it is due: steps may have become slower."""
        self.step_state.check_clock_at = 0

    @_counts_failures
    def write_role(self, role: str) -> None:
        """Record what this process does ("DataLoader worker 3")."""
        self._opened().write_role(role)

    def update_role(self) -> None:
        """Ask multiprocessing, in a child that did not know its role when it started."""
        if self._role_unknown:
            role = multiprocessing_role()
            if role:
                self._role_unknown = False
                self.write_role(role)
                on_worker_exit(self.record_exit)

    @_counts_failures
    def update_ranks(self) -> None:
        """Record the ranks in a distributed job, which may become known after the start."""
        ring, known = self._opened(), ranks()
        if known[0] >= 0 and known != self._ranks_written:
            self._ranks_written = known
            ring.write_ranks(known)

    @_counts_failures
    def announce(self) -> None:
        """Make this process known before it has any event."""
        self._opened()

    def close(self) -> None:
        """Record nothing more, in this process and in those that it forks."""
        self._closed = True
        self.after_step = self.at_out_of_memory = self.at_end = self.take_census = None
        self.follow_pressure = self.under_pressure = None
        self.model_bytes = self.batch_bytes = int
        self.own_objects.remove()
        self._release_ring()

    @_counts_failures
    def after_fork_in_child(self) -> None:
        """A forked child gets a ring of its own, made with its first record."""
        self._release_ring()
        self.schedule.after_fork_in_child()
        self.step_state.after_fork_in_child()
        self._begin(get_ident())

    # -- writing ---------------------------------------------------------------------------

    def _release_ring(self) -> None:
        if self._ring is not None:
            self._kept.append(self._ring)
        self._ring = None

    def _opened(self) -> Ring:
        if self._ring is None:
            if self._closed or self._failures >= _PATIENCE:
                raise OSError
            facts = ProcessIdentity()
            self._role_unknown = facts.role == UNNAMED_CHILD
            self._ranks_written = facts.ranks
            self._ring = Ring(self._directory, facts)
        return self._ring

    def _write(
        self,
        kind: int,
        name: str = "",
        value: float = ring_format.NO_VALUE,
        readings: bytes = ring_format.NO_READINGS,
    ) -> None:
        if self._closed or self._failures >= _PATIENCE:
            return
        ring = self._opened()
        if self._step != self.step_state.reached and self._takes_reached():
            self._step = self.step_state.reached
            if kind != self._auto_kind():
                ring.step(self._auto_kind(), 0, self._step)
        number = ring.name(name) if name else ring_format.NO_NAME
        ring.write(kind, number, self._thread(), self._step, value, readings)
        self._failures = 0

    def _boundary(self, kind: int, name: str, depth: int) -> None:
        self._write(kind, name or " ", depth, self.schedule.at_phase())

    def _failed(self, error: Exception) -> None:
        if isinstance(error, RecursionError):
            return  # the stack of the program is deep: another time it is not
        self._failures += 1
        if self._failures == _PATIENCE:
            self._note_end(f"{type(error).__name__}: {error}"[:_LONGEST_REASON])
            self._release_ring()

    @never_raises
    def _note_end(self, why: str) -> None:
        """Note in the ring that nothing more is recorded, if it can be written."""
        ring = self._ring
        if ring is not None:
            name = ring.name(f"recording ended after {_PATIENCE} failures in a row ({why})")
            ring.write(ring_format.NOTE, name, 0, self._step, *_NOTHING)

    @_counts_failures
    def _note_once(self, text: str) -> None:
        if not self._has_noted:
            self._has_noted = True
            self.note(text)

    def _thread(self) -> int:
        identity = get_ident()
        return 0 if identity == self._main_thread else identity & _THREAD_MASK or 1

    def _stack(self) -> list[str]:
        return self._open.setdefault(get_ident(), [])

    def _takes_reached(self) -> bool:
        """Return True if steps are counted by hooks.

        A program that has imported memdiag has some iterations to begin with its own tags.
        """
        n = self.step_state.reached
        return not self._tags_steps and n > 0 and (n > _GRACE_STEPS or "memdiag" not in sys.modules)

    def _auto_kind(self) -> int:
        return _LOOP_STEP if self.step_state.by_loop else _AUTO_STEP

    def _end_step(self, kind: int) -> None:
        self._steps += 1
        self._measure(kind)
        self.update_role()
        if self.after_step is not None:
            self.after_step()

    def _pass_boundary(self) -> None:
        """A step that is not recorded, because the program may tag its steps, has ended."""
        if not self._tags_steps and self.under_pressure is not None:
            self.under_pressure()

    def _measure(self, kind: int) -> None:
        began_s = thread_time()
        is_beat = kind == _BEAT
        readings, values = self.schedule.at_step(monotonic(), is_beat=is_beat)
        self._write(kind, readings=readings)
        self._write_allocators(values)
        self.schedule.took_since(began_s)

    def _write_allocators(self, values: dict[str, dict[str, int]]) -> None:
        for name, known in values.items():
            # The record of the step has CUDA's bytes, of the same moment.
            kept = {**known, **_WITH_STEPS} if name == _CUDA else known
            self._write(
                ring_format.ALLOCATOR | ring_format.AUTO, name, readings=_pack(*packed(kept))
            )


def _is_part_of_a_step(phase: str) -> bool:
    return phase == "data" or phase.startswith("train")


def _main_thread() -> int:
    """The main thread's identity, which is this thread's at the start of an interpreter."""
    threading = sys.modules.get("threading")
    return get_ident() if threading is None else threading.main_thread().ident or get_ident()


def _whole(n: object) -> int | None:
    try:
        number = int(n) if isinstance(n, float) and n.is_integer() else index(n)  # type: ignore[arg-type]
    except ours(TypeError, ValueError, OverflowError):
        return None
    return number if _MIN_STEP <= number <= _MAX_STEP else None

"""What the probe knows and does in one process: tags become records, forks start anew.

Every public method is called from the program's own threads, hooks or signal handlers. None
raises (what a signal handler of the program raises passes through), waits, or takes a lock.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from math import isfinite
from operator import index
from time import monotonic

from . import layout
from .allocators import packed
from .facts import UNNAMED_CHILD, Facts, ranks
from .gauges import Gauges
from .lastwords import out_of_memory
from .layout import ABSENT
from .pulse import Pulse
from .ring import Ring
from .roles import at_end_of_worker, multiprocessing_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_pack = layout.READING.pack
_THREAD_MASK = 0xFFFFFFFF
_MIN_STEP, _MAX_STEP = layout.NO_STEP + 1, (1 << 63) - 1
# The counter that epochs are recorded as, the probe's and the program's own alike.
EPOCH = "epoch"
# After so many failed writes in a row the ring is given up: its disk is full or gone for good.
_PATIENCE = 3
# Chosen: programs that tag a step do so after an iteration, or after an epoch of hundreds.
_GRACE_STEPS = 200
_AUTO_STEP, _BEAT = layout.STEP | layout.AUTO, layout.METERS | layout.AUTO
_LOOP_STEP = _AUTO_STEP | layout.LOOP
_CUDA = "vram"  # of layout.ALLOCATORS
_WITH_STEPS = {"allocated_bytes": ABSENT, "reserved_bytes": ABSENT}


class Session:
    """The probe's state in this process, over its forks."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._closed = False
        self.pulse = Pulse()
        self.gauges = Gauges(self.note, self.pulse)
        # Rings of the parents. An old mapping holds a descriptor that by now may be a file of
        # the program's: it must never be closed.
        self._kept: list[Ring] = []
        self.after_step: Callable[[], None] | None = None
        self._begin(_main_thread())

    def _begin(self, main_thread: int) -> None:
        self._main_thread = main_thread
        self._ring: Ring | None = None
        self._failures = 0
        self._step = layout.NO_STEP
        self._open: dict[int, list[str]] = {}
        self._tags_steps = self._tags_phases = self._tags_epochs = False
        self._auto_phase = ""
        self._complained = False
        self._role_unknown = False
        self._ranks_told = (-1, -1, -1)
        self._steps = 0

    # -- what the program says -------------------------------------------------------------

    def step(self, n: object) -> None:
        """Step `n` has ended. Anything but a whole number is ignored, with a note."""
        try:
            number = _whole(n)
            if number is None:
                self._complain(f"step({n!r:.40}) was ignored: it is no whole number")
                return
            self._tags_steps = True
            self._step = number
            ring = self._ring
            if ring is not None and monotonic() < self.pulse.due_s:
                self._steps += 1
                ring.step(layout.STEP, self._thread(), number)
            else:
                self._end_step(layout.STEP)
        except Exception:
            self._failed()

    def phase_begin(self, name: object) -> None:
        """Phase `name` begins in this thread."""
        try:
            text = name if type(name) is str else str(name)
            if not self._tags_phases:
                self._tags_phases = True
                self.auto_phase("")
            stack = self._stack()
            stack.append(text)
            self._boundary(layout.PHASE_BEGIN, text, len(stack))
        except Exception:
            self._failed()

    def phase_end(self, name: object) -> None:
        """The innermost open phase `name` of this thread ends, and those inside it."""
        try:
            text = name if type(name) is str else str(name)
            stack = self._stack()
            if text not in stack:
                return  # begun before a fork, or in another thread
            while stack.pop() != text:
                pass
            self._boundary(layout.PHASE_END, text, len(stack))
        except Exception:
            self._failed()

    def counter(self, name: object, value: Any) -> None:
        """The program's counter `name` has `value`. Anything but a finite number is ignored."""
        try:
            number = float(value)
            if isfinite(number):
                text = name if type(name) is str else str(name)
                self._tags_epochs = self._tags_epochs or text == EPOCH
                self._write(layout.COUNTER, text, number)
        except (TypeError, ValueError, OverflowError):
            self._complain(f"counter({name!r:.40}, ...) was ignored: its value is no number")
        except Exception:
            self._failed()

    # -- what the probe says ---------------------------------------------------------------

    def auto_step(self, n: int, now_s: float) -> None:
        """Iteration `n` has ended, by what the hooks see: unless the program tells its own."""
        try:
            self.pulse.by_loop = False
            self.pulse.reached = n
            if now_s < self.pulse.due_s and self._ring is not None:
                return  # told with the next record, whatever that is
            if self._takes_reached():
                self._step = n
                self._end_step(_AUTO_STEP)
        except Exception:
            self._failed()

    def loop_step(self, n: int, now_s: float) -> None:
        """Iteration `n` of a loop has ended: unless anybody else tells steps."""
        try:
            pulse = self.pulse
            if not pulse.by_loop:
                if pulse.reached:
                    return
                pulse.by_loop = True
            pulse.reached = n
            if now_s >= pulse.due_s and self._takes_reached():
                self._step = n
                self._end_step(_LOOP_STEP)
        except Exception:
            self._failed()

    def steps_are_told(self) -> bool:
        """Return True if the program or a framework tells the steps."""
        return self._tags_steps or (self.pulse.reached > 0 and not self.pulse.by_loop)

    def catch_up(self) -> None:
        """Tell the last iteration, where that waits for the next record."""
        try:
            if self._step != self.pulse.reached and self._takes_reached():
                self._write(self._auto_kind())
        except Exception:
            self._failed()

    def auto_phase(self, name: str) -> None:
        """The phase is `name` from now on ("": none), unless the program tells its own."""
        try:
            if self._tags_phases:
                name = ""
            if name == self._auto_phase:
                return
            before, self._auto_phase = self._auto_phase, name
            if _is_part_of_a_step(before) and _is_part_of_a_step(name):
                readings = self.gauges.inside_step()
                self._write(layout.PHASE_BEGIN | layout.AUTO, name, 1, readings)
            elif name:
                self._boundary(layout.PHASE_BEGIN | layout.AUTO, name, 1)
            else:
                self._boundary(layout.PHASE_END | layout.AUTO, before, 0)
        except Exception:
            self._failed()

    def auto_epoch(self, n: int) -> None:
        """Pass `n` over the data begins, unless the program tells its own epochs."""
        try:
            if not self._tags_epochs:
                self._write(layout.COUNTER | layout.AUTO, EPOCH, n)
        except Exception:
            self._failed()

    def census(self, readings: bytes) -> None:
        """Record a look at all objects, packed as layout.READING."""
        try:
            self._write(layout.CENSUS | layout.AUTO, readings=readings)
        except Exception:
            self._failed()

    def note(self, text: str, metric: str = "") -> None:
        """Say in plain words why `metric` is missing, or what else a person should know."""
        try:
            self._write(layout.NOTE, f"{metric}: {text}" if metric else text)
        except Exception:
            self._failed()

    def beat(self) -> None:
        """Record what the steps would bring, where there are none."""
        try:
            self._measure(_BEAT)
        except Exception:
            self._failed()

    def last_words(self) -> None:
        """At the program's end: the last figures, and whether it is for want of memory."""
        try:
            self.catch_up()
            found = out_of_memory()
            readings, figures = self.gauges.at_end()
            if found is not None:
                text, about = found
                self._write(layout.OUT_OF_MEMORY | layout.AUTO, text, about, readings)
            self._write_allocators(figures)
        except Exception:
            self._failed()

    @property
    def steps_told(self) -> tuple[int, int]:
        """What changes with every step."""
        return self._steps, self.pulse.reached

    def measure_next(self) -> None:
        """Have the next step measured, and all looked after that such a step does."""
        self.pulse.measure_next()

    def look_at_clock(self) -> None:
        """Have the next step see if it is due: steps may have become slower than they were."""
        self.pulse.look_at = 0

    def say_role(self, role: str) -> None:
        """Say what this process does ("DataLoader worker 3")."""
        try:
            self._opened().say_role(role)
        except Exception:
            self._failed()

    def learn_role(self) -> None:
        """Ask multiprocessing, in a child that did not know its role when it started."""
        if self._role_unknown:
            role = multiprocessing_role()
            if role:
                self._role_unknown = False
                self.say_role(role)
                at_end_of_worker(self.last_words)

    def learn_ranks(self) -> None:
        """Say the place in a distributed job anew: launchers, and the program itself, may tell it
        after the start.
        """
        try:
            ring, known = self._opened(), ranks()
            if known[0] >= 0 and known != self._ranks_told:
                self._ranks_told = known
                ring.say_ranks(known)
        except Exception:
            self._failed()

    def announce(self) -> None:
        """Make this process known before it has anything to say."""
        try:
            self._opened()
        except Exception:
            self._failed()

    def close(self) -> None:
        """Say nothing more, in this process and those that it forks."""
        self._closed = True
        self.after_step = None
        self._let_go()

    def after_fork_in_child(self) -> None:
        """A forked child is another process: a ring of its own, made when there is something."""
        try:
            self._let_go()
            self.gauges.forked()
            self.pulse.forked()
            self._begin(get_ident())
        except Exception:
            self._failed()

    # -- how -------------------------------------------------------------------------------

    def _let_go(self) -> None:
        if self._ring is not None:
            self._kept.append(self._ring)
        self._ring = None

    def _opened(self) -> Ring:
        if self._ring is None:
            if self._closed or self._failures >= _PATIENCE:
                raise OSError
            facts = Facts()
            self._role_unknown = facts.role == UNNAMED_CHILD
            self._ranks_told = facts.ranks
            self._ring = Ring(self._directory, facts)
        return self._ring

    def _write(
        self,
        kind: int,
        name: str = "",
        value: float = layout.NO_VALUE,
        readings: bytes = layout.NO_READINGS,
    ) -> None:
        if self._closed or self._failures >= _PATIENCE:
            return
        ring = self._opened()
        if self._step != self.pulse.reached and self._takes_reached():
            self._step = self.pulse.reached
            if kind != self._auto_kind():
                ring.step(self._auto_kind(), 0, self._step)
        number = ring.name(name) if name else layout.NO_NAME
        ring.write(kind, number, self._thread(), self._step, value, readings)
        self._failures = 0

    def _boundary(self, kind: int, name: str, depth: int) -> None:
        self._write(kind, name or " ", depth, self.gauges.at_phase())

    def _failed(self) -> None:
        self._failures += 1
        if self._failures >= _PATIENCE:
            self._let_go()

    def _complain(self, text: str) -> None:
        try:
            if not self._complained:
                self._complained = True
                self.note(text)
        except Exception:
            self._failed()

    def _thread(self) -> int:
        identity = get_ident()
        return 0 if identity == self._main_thread else identity & _THREAD_MASK or 1

    def _stack(self) -> list[str]:
        return self._open.setdefault(get_ident(), [])

    def _takes_reached(self) -> bool:
        """A program that has imported memdiag is given some iterations to begin with its own."""
        n = self.pulse.reached
        return not self._tags_steps and n > 0 and (n > _GRACE_STEPS or "memdiag" not in sys.modules)

    def _auto_kind(self) -> int:
        return _LOOP_STEP if self.pulse.by_loop else _AUTO_STEP

    def _end_step(self, kind: int) -> None:
        self._steps += 1
        self._measure(kind)
        self.learn_role()
        if self.after_step is not None:
            self.after_step()

    def _measure(self, kind: int) -> None:
        began_s = monotonic()
        is_beat = kind == _BEAT
        readings, figures = self.gauges.at_step(began_s, is_beat=is_beat)
        self._write(kind, readings=readings)
        self._write_allocators(figures)
        self.gauges.took_since(began_s)

    def _write_allocators(self, figures: dict[str, dict[str, int]]) -> None:
        for name, known in figures.items():
            # CUDA's bytes are with the step, at the same moment.
            told = {**known, **_WITH_STEPS} if name == _CUDA else known
            self._write(layout.ALLOCATOR | layout.AUTO, name, readings=_pack(*packed(told)))


def _is_part_of_a_step(phase: str) -> bool:
    return phase == "data" or phase.startswith("train")


def _main_thread() -> int:
    """The main thread's identity: this one's at the start of an interpreter."""
    threading = sys.modules.get("threading")
    return get_ident() if threading is None else threading.main_thread().ident or get_ident()


def _whole(n: object) -> int | None:
    try:
        number = int(n) if isinstance(n, float) and n.is_integer() else index(n)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if _MIN_STEP <= number <= _MAX_STEP else None

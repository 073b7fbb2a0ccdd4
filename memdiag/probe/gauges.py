"""All meters of one process: which of them are read when, so that no step feels them.

What was last used a step ago is no longer in the processor's caches, so a reading inside of a
training takes ten times what it takes in a loop: `mallinfo2` 25 us in place of 2. So most short
steps are told without any reading, and what the readings cost is measured where they are taken.
"""

from __future__ import annotations

from time import monotonic

from . import layout
from .allocators import Allocators, At
from .layout import ABSENT
from .meters import Budgeted, InUse, Meter, ResidentSize, malloc_bytes, python_blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .pulse import Pulse

    Figures = dict[str, dict[str, int]]

_pack = layout.READING.pack
_CUDA = "vram"  # of layout.ALLOCATORS
# Shares of the time: all of them below 0.2 %, for a step of 5 ms. The resident size is seen from
# outside as well, and small objects are many before they matter. Chosen.
_MALLOC, _BLOCKS, _RESIDENT, _AROUND, _INSIDE = 0.0005, 0.0003, 0.0001, 0.0003, 0.0005
# So many readings in a row after a rest: all steps of a short run, and those that come seldom.
_ROUNDS, _FEW = 200, 16
# Steps that come sooner than this after each other may have to wait for one that is measured; none
# waits longer, for there is more to look after at such a step.
_LONGEST_S = 0.25


class Gauges:
    """The meters, each with budgets of its own, and what reading them together costs."""

    def __init__(self, note: Callable[[str, str], None], pulse: Pulse) -> None:
        """note: told, in plain words, what is missing and of which metric. pulse: told when the
        next step is to be measured.
        """
        self._pulse = pulse
        self._note = note
        self._whatever = ResidentSize()
        self._resident = Meter(
            self._whatever, _nothing, share=_RESIDENT, burst=_ROUNDS, burst_at_phases=_ROUNDS
        )
        self._inside = Budgeted(self._whatever, _nothing, share=_INSIDE)
        blocks = python_blocks()
        self._blocks = None if blocks is None else self._meter("python_blocks", blocks, _BLOCKS)
        self._malloc: Meter | None = None
        self._malloc_known = False
        self._in_use: InUse | None = None
        self._around = Budgeted(_unknown, _nothing, share=_AROUND, burst=_ROUNDS)
        self.allocators = Allocators(note)
        self.count_tensors: Callable[[], int] = _unknown

    def at_step(self) -> tuple[bytes, Figures]:
        """The meters as far as their budgets allow, packed as layout.READING, and what the
        frameworks' allocators say.
        """
        figures = self.allocators.read(At.STEP)
        began_s = monotonic()
        readings = self._all(figures, self._resident.at_steps())
        self._look_again(began_s)
        return readings, figures

    def at_end(self) -> tuple[bytes, Figures]:
        """The same at the program's end, the resident size whatever it costs."""
        figures = self.allocators.read(At.EXIT)
        return self._all(figures, self._whatever()), figures

    def at_phase(self) -> bytes:
        """What belongs to a moment where a phase begins or ends."""
        malloc = ABSENT if self._malloc is None else self._malloc.at_phases()
        blocks = ABSENT if self._blocks is None else self._blocks.at_phases()
        cuda = self.allocators.read(At.PHASE).get(_CUDA)
        return _packed(self._resident.at_phases(), malloc, blocks, cuda)

    def inside_step(self) -> bytes:
        """What may be told several times in each step: these share one budget."""
        if monotonic() < self._inside.not_before_s:
            return layout.NO_READINGS
        return _packed(self._inside(), ABSENT, ABSENT, None)

    def forked(self) -> None:
        """In a forked child."""
        self._whatever.forget()
        self.allocators.forked()

    def _all(self, figures: Figures, resident_bytes: int) -> bytes:
        if not self._malloc_known:
            self._find_malloc()
        malloc = free = ABSENT
        if self._malloc is not None and self._in_use is not None:
            malloc = self._malloc.at_steps()
            free = ABSENT if malloc == ABSENT else self._in_use.free_bytes
        blocks = ABSENT if self._blocks is None else self._blocks.at_steps()
        tensors = self.count_tensors()
        return _packed(resident_bytes, malloc, blocks, figures.get(_CUDA), tensors, free)

    def _look_again(self, began_s: float) -> None:
        """When the first of the meters may be read again, and what is around them is paid for."""
        meters = [meter.at_steps for meter in (self._resident, self._malloc, self._blocks) if meter]
        now_s = monotonic()
        self._around.charge(now_s - began_s - sum(meter.took_s for meter in meters), now_s)
        first_s = min(meter.not_before_s for meter in meters)
        self._pulse.due_s = min(max(first_s, self._around.not_before_s), now_s + _LONGEST_S)

    def _find_malloc(self) -> None:
        """At the first reading, not before: the program pays for ctypes if it is to use it."""
        self._malloc_known = True
        found = malloc_bytes()
        if isinstance(found, str):
            self._note(found, "malloc_bytes")
        else:
            self._in_use = found
            self._malloc = self._meter("malloc_bytes", found, _MALLOC, _ROUNDS)

    def _meter(
        self, metric: str, read: Callable[[], int], share: float, burst: int = _FEW
    ) -> Meter:
        return Meter(read, lambda text: self._note(text, metric), share=share, burst=burst)


def _packed(
    rss: int,
    malloc: int,
    blocks: int,
    cuda: dict[str, int] | None,
    tensors: int = ABSENT,
    free: int = ABSENT,
) -> bytes:
    known, a = cuda or {}, ABSENT
    allocated = known.get("allocated_bytes", ABSENT)
    reserved = known.get("reserved_bytes", ABSENT)
    return _pack(rss, malloc, blocks, tensors, allocated, reserved, free, a, a, a)


def _unknown() -> int:
    return ABSENT


def _nothing(_: Any) -> None:
    """A pause of ours that is nothing to tell: the size is seen from outside as well."""

"""All meters of one process: which of them are read when, so that no step feels them.

What was last used a step ago is no longer in the processor's caches, so a reading inside of a
training takes ten times what it takes in a loop: `mallinfo2` 25 us in place of 2. So most short
steps are told without any reading, and what the readings cost is measured where they are taken.
"""

from __future__ import annotations

from time import monotonic

from . import ring_format
from .framework_allocators import Allocators, ReadAt
from .process_metrics import (
    Budgeted,
    BudgetedMetric,
    MallocInUse,
    ResidentSize,
    gc_counts,
    malloc_bytes,
    python_blocks,
)
from .ring_format import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .step_state import StepState

    Values = dict[str, dict[str, int]]

_pack = ring_format.READING.pack
NOTHING_COLLECTED = (ABSENT, ABSENT, ABSENT)
_CUDA = "vram"  # of ring_format.ALLOCATORS
# Shares of the time: all of them below 0.2 %, for a step of 5 ms. The resident size is seen from
# outside as well, and small objects are many before they matter. Chosen.
_MALLOC, _BLOCKS, _RESIDENT, _AROUND, _INSIDE = 0.0004, 0.0003, 0.0001, 0.0003, 0.0005
# What these may take beyond their shares, at the start and after a rest: a short run is to be
# known as well, and two hundred steps of a few milliseconds have a hundred readings for it, of
# some 100 us, and of Python's blocks twenty, of 300 us. Chosen.
_MALLOC_S, _BLOCKS_S, _RESIDENT_S, _AROUND_S = 6e-3, 7e-3, 1e-3, 8e-3
# The first readings follow each other at once, the next ones take this part of the time at most.
# Chosen.
_FIRST, _DENSE = 32, 0.005
# Of Python's blocks each of the first readings is told, then every so many, or once a second.
_FIRST_BLOCKS, _BLOCKS_EVERY, _BLOCKS_EVERY_S = 8, 4, 1.0
_AT_PHASES = 200
# Steps that come sooner than this after each other may have to wait for one that is measured; none
# waits longer, for there is more to look after at such a step.
_LONGEST_S = 0.25


class MetricSchedule:
    """The meters, each with budgets of its own, and what reading them together costs."""

    def __init__(self, note: Callable[[str, str], None], step_state: StepState) -> None:
        """note: told, in plain words, what is missing and of which metric. step_state: learns when
        the next step is to be measured.
        """
        self._step_state = step_state
        self._note = note
        self._rss = ResidentSize()
        self._resident = BudgetedMetric(
            self._rss,
            _nothing,
            share=_RESIDENT,
            credit_s=_RESIDENT_S,
            burst_at_phases=_AT_PHASES,
        )
        self._inside = Budgeted(self._rss, _nothing, share=_INSIDE)
        blocks = python_blocks()
        self._blocks = (
            None if blocks is None else self._meter("python_blocks", blocks, _BLOCKS, _BLOCKS_S)
        )
        self._blocks_due_s = 0.0
        self._malloc: BudgetedMetric | None = None
        self._malloc_known = False
        self._in_use: MallocInUse | None = None
        self._around = Budgeted(_unknown, _nothing, share=_AROUND, credit_s=_AROUND_S)
        self._read = 0
        self.allocators = Allocators(note)
        self.count_tensors: Callable[[], int] = _unknown

    def at_step(self, now_s: float, *, is_beat: bool = False) -> tuple[bytes, Values]:
        """The meters as far as their budgets allow, packed as ring_format.READING, and what the
        frameworks' allocators say. `took_since` is to follow.

        is_beat: it is no step, but the thread that looks where there are none.
        """
        figures = self.allocators.read(ReadAt.STEP)
        if not is_beat:
            self._read += 1
        return self._all(figures, self._resident.at_steps(), self._read_blocks(now_s)), figures

    def took_since(self, began_s: float) -> None:
        """All that a measured step has brought is done: see when the next one may be."""
        malloc, resident, around = self._malloc, self._resident.at_steps, self._around
        main = resident if malloc is None else malloc.at_steps
        now_s = monotonic()
        took_s = now_s - began_s
        if self._blocks is not None:
            took_s -= self._blocks.at_steps.took_s
        around.charge(max(0.0, took_s - resident.took_s - main.took_s), now_s)
        pause_s = 0.0 if self._read <= _FIRST else took_s / _DENSE
        due_s = max(main.not_before_s, around.not_before_s, now_s + pause_s)
        self._step_state.due_s = min(due_s, now_s + _LONGEST_S)

    def at_end(self) -> tuple[bytes, Values]:
        """The same at the program's end, the resident size whatever it costs."""
        figures = self.allocators.read(ReadAt.EXIT)
        blocks = ABSENT if self._blocks is None else self._blocks.at_steps()
        return self._all(figures, self._rss(), blocks), figures

    def at_phase(self) -> bytes:
        """What belongs to a moment where a phase begins or ends."""
        malloc = ABSENT if self._malloc is None else self._malloc.at_phases()
        blocks = ABSENT if self._blocks is None else self._blocks.at_phases()
        cuda = self.allocators.read(ReadAt.PHASE).get(_CUDA)
        return _packed(self._resident.at_phases(), malloc, blocks, cuda)

    def inside_step(self) -> bytes:
        """What may be told several times in each step: these share one budget."""
        if monotonic() < self._inside.not_before_s:
            return ring_format.NO_READINGS
        return _packed(self._inside(), ABSENT, ABSENT, None)

    def after_fork_in_child(self) -> None:
        """In a forked child."""
        self._rss.forget()
        self.allocators.after_fork_in_child()

    def _all(self, figures: Values, resident_bytes: int, blocks: int) -> bytes:
        if not self._malloc_known:
            self._find_malloc()
        malloc = free = ABSENT
        if self._malloc is not None and self._in_use is not None:
            malloc = self._malloc.at_steps()
            free = ABSENT if malloc == ABSENT else self._in_use.free_bytes
        tensors = self.count_tensors()
        # (The collector's figures are there to explain the blocks.)
        freed = NOTHING_COLLECTED if blocks == ABSENT else gc_counts()
        return _packed(resident_bytes, malloc, blocks, figures.get(_CUDA), tensors, free, freed)

    def _read_blocks(self, now_s: float) -> int:
        """Python's blocks, which take longer than all the rest: not with every step."""
        blocks, read = self._blocks, self._read
        if blocks is None:
            return ABSENT
        if read > _FIRST_BLOCKS and read % _BLOCKS_EVERY and now_s < self._blocks_due_s:
            blocks.at_steps.took_s = 0.0
            return ABSENT
        self._blocks_due_s = now_s + _BLOCKS_EVERY_S
        return int(blocks.at_steps())

    def _find_malloc(self) -> None:
        """At the first reading, not before: the program pays for ctypes if it is to use it."""
        self._malloc_known = True
        found = malloc_bytes()
        if isinstance(found, str):
            self._note(found, "malloc_bytes")
        else:
            self._in_use = found
            self._malloc = self._meter("malloc_bytes", found, _MALLOC, _MALLOC_S)

    def _meter(
        self, metric: str, read: Callable[[], int], share: float, credit_s: float
    ) -> BudgetedMetric:
        return BudgetedMetric(
            read, lambda text: self._note(text, metric), share=share, credit_s=credit_s
        )


def _packed(
    rss: int,
    malloc: int,
    blocks: int,
    cuda: dict[str, int] | None,
    tensors: int = ABSENT,
    free: int = ABSENT,
    freed: tuple[int, int, int] = NOTHING_COLLECTED,
) -> bytes:
    known = cuda or {}
    allocated = known.get("allocated_bytes", ABSENT)
    reserved = known.get("reserved_bytes", ABSENT)
    return _pack(rss, malloc, blocks, tensors, allocated, reserved, free, *freed)


def _unknown() -> int:
    return ABSENT


def _nothing(_: Any) -> None:
    """A pause of ours that is nothing to tell: the size is seen from outside as well."""

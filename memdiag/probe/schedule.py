"""Decides which metrics of a process are read when, so that the cost per step is negligible.

Code and data last used one step ago are no longer in the processor's caches, so a reading in a
training takes ten times as long as in a loop: 25 us for `mallinfo2` instead of 2. So most short
steps are recorded without readings, and the cost of each reading is measured as it is taken.
"""

from __future__ import annotations

import sys
from time import monotonic, thread_time

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
# Shares of the time, in all below 0.2% for a step of 5 ms. The resident size is also read from
# outside, and it takes many small objects to matter. Heuristic.
_MALLOC, _BLOCKS, _RESIDENT, _AROUND, _INSIDE = 0.0004, 0.0003, 0.0001, 0.0003, 0.0005
# What they may take beyond their shares, at the start and after a pause, so that short runs are
# measured too: two hundred steps of a few milliseconds get a hundred readings of some 100 us, and
# twenty of Python's blocks of 300 us. Heuristic.
_MALLOC_S, _BLOCKS_S, _RESIDENT_S, _AROUND_S = 6e-3, 7e-3, 1e-3, 8e-3
# The shares at first of malloc and of Python's blocks, so that readings of 2 ms, in a process with
# many free chunks, are 20 in the first minute, as many as a verdict takes. Heuristic.
_MALLOC_FIRST, _BLOCKS_FIRST = 0.001, 0.0008
# The first readings are taken without a pause, the next ones take at most this share of the time.
# Heuristic.
_FIRST, _DENSE = 32, 0.005
# Python's blocks are read with each of the first readings, then with every fourth or once a second.
_FIRST_BLOCKS, _BLOCKS_EVERY, _BLOCKS_EVERY_S = 8, 4, 1.0
_AT_PHASES = 200
# Readings that take less than this are taken beside others, without a budget. Heuristic.
_LITTLE_S = 2e-3
# The longest time between two measured steps: more than the metrics is checked at such a step.
_LONGEST_S = 0.25


class MetricSchedule:
    """The metrics, each with budgets of its own, and a budget for reading them together."""

    def __init__(self, note: Callable[[str, str], None], step_state: StepState) -> None:
        """note: called with a reason and the metric that is missing for it. step_state: where the
        moment of the next measured step is set.
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
            None
            if blocks is None
            else self._meter("python_blocks", blocks, _BLOCKS, _BLOCKS_S, _BLOCKS_FIRST)
        )
        self._blocks_due_s = 0.0
        self._malloc: BudgetedMetric | None = None
        self._malloc_known = False
        self._in_use: MallocInUse | None = None
        self._around = Budgeted(_unknown, _nothing, share=_AROUND, credit_s=_AROUND_S)
        self._read = 0
        self.allocators = Allocators(note)
        # The last readings, for what explains them.
        self.malloc_now = self.blocks_now = self.device_now = ABSENT
        self.count_tensors: Callable[[], int] = _unknown

    def at_step(self, now_s: float, *, is_beat: bool = False) -> tuple[bytes, Values]:
        """The readings that the budgets allow, packed as ring_format.READING, and those of the
        frameworks' allocators. Call `took_since` afterwards.

        is_beat: called by the heartbeat, not at a step.
        """
        values = self.allocators.read(ReadAt.STEP)
        if not is_beat:
            self._read += 1
        return self._all(values, self._resident.at_steps(), self._read_blocks(now_s)), values

    def took_since(self, began_s: float) -> None:
        """All work of a measured step is done: set when the next step may be measured.

        began_s: the CPU time of this thread when it began.
        """
        malloc, resident, around = self._malloc, self._resident.at_steps, self._around
        main = resident if malloc is None else malloc.at_steps
        now_s = monotonic()
        took_s = thread_time() - began_s
        if self._blocks is not None:
            took_s -= self._blocks.at_steps.took_s
        around.charge(max(0.0, took_s - resident.took_s - main.took_s), now_s)
        pause_s = 0.0 if self._read <= _FIRST else took_s / _DENSE
        due_s = max(main.not_before_s, around.not_before_s, now_s + pause_s)
        self._step_state.due_s = min(due_s, now_s + _LONGEST_S)

    def at_end(self) -> tuple[bytes, Values]:
        """The same at the program's end, with the resident size whatever it costs."""
        values = self.allocators.read(ReadAt.EXIT)
        blocks = ABSENT if self._blocks is None else self._blocks.at_steps()
        return self._all(values, self._rss(), blocks), values

    def malloc_in_use(self) -> Callable[[], int] | None:
        """Reads what malloc has in use, without any budget; None where that cannot be read."""
        return self._in_use

    def in_use_now(self) -> tuple[int, int, int]:
        """What malloc has in use, Python's blocks, and what devices have in use, as in the last
        readings; those of the host are taken anew if that takes little. ABSENT if never read.
        """
        if self.malloc_now != ABSENT and self._in_use is not None and _takes_little(self._malloc):
            self.malloc_now = self._in_use()
        if self.blocks_now != ABSENT and _takes_little(self._blocks):
            self.blocks_now = sys.getallocatedblocks()
        return self.malloc_now, self.blocks_now, self.device_now

    def at_phase(self) -> bytes:
        """The readings for the beginning or end of a phase."""
        malloc = ABSENT if self._malloc is None else self._malloc.at_phases()
        blocks = ABSENT if self._blocks is None else self._blocks.at_phases()
        cuda = self.allocators.read(ReadAt.PHASE).get(_CUDA)
        return _packed(self._resident.at_phases(), malloc, blocks, cuda)

    def inside_step(self) -> bytes:
        """The readings for phases within a step, which share one budget."""
        if monotonic() < self._inside.not_before_s:
            return ring_format.NO_READINGS
        return _packed(self._inside(), ABSENT, ABSENT, None)

    def after_fork_in_child(self) -> None:
        """In a forked child."""
        self._rss.forget()
        self.allocators.after_fork_in_child()

    def _all(self, values: Values, resident_bytes: int, blocks: int) -> bytes:
        if not self._malloc_known:
            self._find_malloc()
        malloc = free = ABSENT
        if self._malloc is not None and self._in_use is not None:
            malloc = self._malloc.at_steps()
            free = ABSENT if malloc == ABSENT else self._in_use.free_bytes
            self.malloc_now = self.malloc_now if malloc == ABSENT else malloc
        tensors = self.count_tensors()
        if blocks != ABSENT:
            self.blocks_now = blocks
        cuda = values.get(_CUDA)
        if cuda is not None:
            self.device_now = cuda.get("allocated_bytes", ABSENT)
        # The collector's values explain the blocks.
        freed = NOTHING_COLLECTED if blocks == ABSENT else gc_counts()
        return _packed(resident_bytes, malloc, blocks, cuda, tensors, free, freed)

    def _read_blocks(self, now_s: float) -> int:
        """Python's blocks, which take longer than all the rest: not read at every step."""
        blocks, read = self._blocks, self._read
        if blocks is None:
            return ABSENT
        if read > _FIRST_BLOCKS and read % _BLOCKS_EVERY and now_s < self._blocks_due_s:
            blocks.at_steps.took_s = 0.0
            return ABSENT
        self._blocks_due_s = now_s + _BLOCKS_EVERY_S
        return int(blocks.at_steps())

    def _find_malloc(self) -> None:
        """Called at the first reading, not before, because ctypes is expensive to import."""
        self._malloc_known = True
        found = malloc_bytes()
        if isinstance(found, str):
            self._note(found, "malloc_bytes")
        else:
            self._in_use = found
            self._malloc = self._meter("malloc_bytes", found, _MALLOC, _MALLOC_S, _MALLOC_FIRST)

    def _meter(
        self,
        metric: str,
        read: Callable[[], int],
        share: float,
        credit_s: float,
        first_share: float,
    ) -> BudgetedMetric:
        return BudgetedMetric(
            read,
            lambda text: self._note(text, metric),
            share=share,
            credit_s=credit_s,
            first_share=first_share,
        )


def _takes_little(metric: BudgetedMetric | None) -> bool:
    return metric is not None and metric.at_steps.cost_s < _LITTLE_S


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
    """Ignore a metric that is read rarely: the resident size is also read from outside."""

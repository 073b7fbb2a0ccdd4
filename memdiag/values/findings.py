"""The values of a diagnosis: what was found in a recording, ready to be rendered.

Plain numbers and tuples, so that every value prints as JSON. `x` is a position on the series' own
axis; an interval is of 95 % unless it says otherwise; what a falling column falls by is growth.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from memdiag.values.budgets import Budget
from memdiag.values.capacity import Capacity, Foretold
from memdiag.values.measurements import Axis, Ending, Mark, Missing, Role, Unit
from memdiag.values.verdict import Argument, Reason, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with its interval, `low <= value <= high`."""

    value: float
    low: float
    high: float

    @classmethod
    def around(cls, value: float, half_width: float = 0.0) -> Interval:
        """A value with an interval that is as wide below it as above."""
        return cls(value=value, low=value - half_width, high=value + half_width)

    def scaled(self, factor: float) -> Interval:
        """The same in another unit; `factor` is positive."""
        return Interval(value=self.value * factor, low=self.low * factor, high=self.high * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One regime: a straight line from (start_x, start_value) to (end_x, end_value)."""

    start_x: float
    end_x: float
    start_value: float
    end_value: float
    samples: int
    slope_per_x: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """The level that a series stays at: its range over [since_x.value, end]."""

    since_x: Interval
    low_value: float
    high_value: float
    lasted_x: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The value expected at a position if the last regime goes on."""

    at_x: float
    value: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitHit:
    """Where growth reaches a limit, infinite where it may never; `in_s` at the recorded pace."""

    limit: str
    limit_bytes: int
    at_x: Interval
    in_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLimit:
    """Of all limits the one that the run reaches first, if it goes on as it does.

    series: index of the recording's series that reaches it. at_x: on that series' axis. left_s:
    time left after the last sample, None where the source has no clock.
    confidence: probability that the growth goes on, 0..1; None where that can't be told.
    rival: another series' limit that may be reached before it as well, "" where the order is clear.
    """

    limit: str
    limit_bytes: int
    series: int
    at_x: Interval
    left_s: Interval | None
    confidence: float | None
    rival: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedMore:
    """How much longer until the verdict is settled; both None: not decidable in this run."""

    more_x: float | None
    more_s: float | None
    why: str = ""


class KnownSize(enum.Enum):
    """Sizes that one event's growth may be a multiple of."""

    MODEL = "model"  # the parameters once
    OPTIMIZER_STATE = "optimizer_state"  # what the optimizer keeps per parameter
    TRAINING_STATE = "training_state"  # parameters, gradients and optimizer state
    BATCH = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMatch:
    """Growth that is `multiple` times a known size of `size_bytes`."""

    multiple: float
    what: KnownSize
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseGrowth:
    """Growth that falls into one phase.

    events: events of the phase in the growing regime, an event being one maximal run of it.
    growth_per_event: mean growth of one growing event, with interval.
    spread: standard deviation over mean of the growing events (0.01: "+-1 %"), None below 2.
    share: part of the whole growth, 0..1.
    p_value: probability of a share as large if tags had nothing to do with growth
        (permutation by rotating each cycle, times the number of phases tested), 0..1.
    times_elsewhere: growth per unit of the axis inside the phase over that outside it; None where
        nothing grows outside.
    match: what one event's growth is a multiple of, if known.
    """

    phase: str
    events: int
    growing_events: int
    growth_per_event: Interval
    spread: float | None
    share: float
    p_value: float
    times_elsewhere: float | None = None
    match: SizeMatch | None = None

    @property
    def blamed(self) -> bool:
        """The phase holds growth, again and again, far denser than elsewhere, not by chance."""
        return (
            self.p_value <= BLAME_P_VALUE
            and self.share >= BLAME_SHARE
            and self.growing_events >= max(BLAME_EVENTS, BLAME_EVENT_SHARE * self.events)
            and (self.times_elsewhere is None or self.times_elsewhere >= BLAME_TIMES_ELSEWHERE)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringGrowth:
    """The same growth in every event of several phases: no phase stands out, the amount does.

    growth_per_event: mean; least, most: of the events; spread: standard deviation over mean.
    match: what it is a multiple of, if known.
    """

    phases: tuple[str, ...]
    events: int
    growth_per_event: float
    least: float
    most: float
    spread: float
    match: SizeMatch | None = None


# Chosen: at most 1 % of runs without a guilty phase blame one (benchmarks/phases.py measures it).
BLAME_P_VALUE = 0.01
BLAME_SHARE = 0.25
BLAME_EVENTS = 3
BLAME_EVENT_SHARE = 0.4
BLAME_TIMES_ELSEWHERE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found in one series.

    confidence: probability that `verdict` is right, 0..1, calibrated (docs/method.md).
    growth_per_x: rate of the last regime per unit of the axis.
    growth_per_s: the same per second, where the source has a clock.
    growth_per_epoch: the same per pass over the data, where epochs are told beside the axis.
    onset_x: where the growth that makes a LEAK began.
    peaks_grow: the floor is flat but the peaks rise: a warning of its own.
    trace: (x, value) points of a faithful thumbnail for plots, at most a few hundred.
    tops: the same of the highest reading at each position; empty where each has one reading.
    samples, dropped_start, dropped_end: all samples, and those set apart at each end.
    recurring: growth that every tagged event shares, where no phase is blamed.
    restarts: earlier incarnations that were set apart (this finding is about the last).
    planned: the forecasts are for the run's planned end.
    trail: every argument that was made about the series, in order.
    """

    metric: str
    column: str
    process: str
    role: Role
    unit: Unit
    axis: Axis
    verdict: Verdict
    confidence: float
    reason: Reason
    samples: int
    first_x: float
    last_x: float
    start_value: float
    latest_value: float
    peak_value: float
    segments: tuple[Segment, ...]
    growth_per_x: Interval | None
    growth_per_s: Interval | None
    plateau: Plateau | None
    onset_x: Interval | None
    forecasts: tuple[Forecast, ...]
    limit_hits: tuple[LimitHit, ...]
    need_more: NeedMore | None
    phases: tuple[PhaseGrowth, ...]
    trace: tuple[tuple[float, float], ...]
    tops: tuple[tuple[float, float], ...] = ()
    growth_per_epoch: Interval | None = None
    peaks_grow: bool = False
    recurring: RecurringGrowth | None = None
    restarts: int = 0
    planned: bool = False
    dropped_start: int = 0
    dropped_end: int = 0
    trail: tuple[Argument, ...] = ()


class EvidenceKind(enum.Enum):
    """A statement that weighs several series of a recording together."""

    TENSORS_FLAT = "tensors_flat"  # memory grows, the tensor count does not
    TENSORS_GROW = "tensors_grow"  # the tensor count grows as well
    OBJECTS_GROW = "objects_grow"  # Python's own objects grow as well
    IN_USE_FLAT = "in_use_flat"  # resident grows, memory in use does not: fragmentation
    ALLOCATED_FLAT = "allocated_flat"  # reserved grows, allocated does not: caching
    RESERVED_FLAT = "reserved_flat"  # the driver's figure grows, the framework's does not
    HOLES_GROW = "holes_grow"  # the framework's cache grows by pieces that nothing fits into
    ALLOCATIONS_GROW = "allocations_grow"  # the number of blocks in use grows as well
    ALLOCATIONS_FLAT = "allocations_flat"  # it does not: the blocks are larger
    WAITING_GROWS = "waiting_grows"  # freed blocks wait for another stream
    RETRIES_RISE = "retries_rise"  # the allocator had to give its cache back and try again
    OOMS_RISE = "ooms_rise"  # an allocation failed
    ONE_PROCESS = "one_process"  # the growth is in one process
    PROCESSES_GROW = "processes_grow"  # the number of processes grows
    COUNTER_GROWS = "counter_grows"  # a user's counter grows with the memory
    COUNT_GROWS = "count_grows"  # memory is calm, what is counted beside it grows
    EARLIER_RUN = "earlier_run"  # an earlier incarnation was set apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One such statement: `subject` and `against` name series as "process metric"."""

    kind: EvidenceKind
    subject: str
    against: str = ""
    supports: Verdict | None = None


class MemoryKind(enum.Enum):
    """What a leak on the host consists of: in Python's view, then in that of the C library."""

    TENSORS = "tensors"  # of tensors that Python objects keep
    GRAPH = "graph"  # kept by autograd for backward passes that may still come
    PYTHON_OBJECTS = "python_objects"  # small objects, in Python's own allocator
    NATIVE = "native"  # from malloc, in none of these: arrays, long strings, libraries
    NATIVE_OR_TENSORS = "native_or_tensors"  # from malloc, and tensors were not counted
    HOLES = "holes"  # all that is in use is steady: malloc keeps what was freed, in pieces
    MAPPED = "mapped"  # mapped some other way than by malloc and Python


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaking:
    """The kind of memory that leaks, and its part of what grows, 0..1, where that is known."""

    kind: MemoryKind
    share: float | None


class Standing(enum.Enum):
    """How a series stands to a budget."""

    KEPT = "kept"
    BROKEN = "broken"
    UNCLEAR = "unclear"  # not measured, or not surely on either side: a doubt, never a pass


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFinding:
    """One budget held against one series.

    metric, process, unit: of the series; "" and None where the budget found none.
    figure: what was measured, in the unit of the series (growth: over the budget's stretch);
        None where nothing was.
    why: for UNCLEAR, what is lacking.
    """

    budget: Budget
    standing: Standing
    metric: str
    process: str
    unit: Unit | None
    figure: Interval | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingFinding:
    """What was found in one recording. `decided_by` indexes `series`; None without a series."""

    source: str
    verdict: Verdict
    confidence: float
    series: tuple[Finding, ...]
    decided_by: int | None
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    ending: Ending | None = None
    budgets: tuple[BudgetFinding, ...] = ()
    marks: tuple[Mark, ...] = ()
    first_limit: FirstLimit | None = None
    capacity: tuple[Capacity, ...] = ()
    leaking: Leaking | None = None
    foretold: Foretold | None = None

    @property
    def deciding(self) -> Finding | None:
        """The series that the verdict rests on."""
        return None if self.decided_by is None else self.series[self.decided_by]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A source that could not be analysed."""

    source: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Everything one command found: what every renderer takes, and nothing else."""

    recordings: tuple[RecordingFinding, ...]
    failures: tuple[Failure, ...] = ()

    @property
    def budgets(self) -> tuple[BudgetFinding, ...]:
        """Every budget of every recording."""
        return tuple(held for recording in self.recordings for held in recording.budgets)

    @property
    def verdict(self) -> Verdict:
        """The worst of the recordings: a leak anywhere is a leak, a doubt anywhere a doubt."""
        found = {r.verdict for r in self.recordings}
        for verdict in (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE):
            if verdict in found:
                return verdict
        return Verdict.INCONCLUSIVE

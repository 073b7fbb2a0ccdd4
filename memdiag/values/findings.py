"""The values of a diagnosis: what was found in recordings, ready to be rendered.

These types are the JSON document, too (`report/formats/json_documents.py`); the schema takes the
descriptions of its keys from the docstrings (`name: text`). A name that ends in `_x` is a position
or a length on the axis of the series. Intervals are 95% intervals. In a column that counts
downwards (free memory), a decrease is growth.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from memdiag.values.budgets import Budget
from memdiag.values.capacity import Capacity, EarlyForecast
from memdiag.values.codec import NOT_IN_JSON
from memdiag.values.measurements import Axis, Ending, Mark, Missing, Role, Unit
from memdiag.values.verdict import Argument, Reason, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its 95% interval.

    value: the estimate. low: lower end; null if unbounded. high: upper end; null if unbounded.
    """

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
    """A part of a series with one slope: a straight line between two points.

    start_x: position of the first point. end_x: position of the last point.
    start_value: fitted value at the start. end_value: fitted value at the end.
    samples: number of samples. slope_per_x: growth rate per unit of the axis.
    """

    start_x: float
    end_x: float
    start_value: float
    end_value: float
    samples: int
    slope_per_x: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """The part after growth in which a series no longer grows.

    since_x: where it begins. low_value: lowest value in it. high_value: highest value in it.
    lasted_x: its length so far.
    """

    since_x: Interval
    low_value: float
    high_value: float
    lasted_x: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The value expected if the trend of the last segment continues.

    at_x: position that the forecast is for. value: expected value.
    """

    at_x: float
    value: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitHit:
    """When growth reaches a limit.

    limit: name of the limit. limit_bytes: its size.
    at_x: position at which it is reached; an end is null if it may never be reached.
    in_s: time left at the recorded pace, in seconds; null without a clock.
    """

    limit: str
    limit_bytes: int
    at_x: Interval
    in_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLimit:
    """The limit that the run reaches first if the trend continues.

    limit: name of the limit. limit_bytes: its size.
    series: index of the series that reaches it.
    at_x: position at which it is reached, on the axis of that series.
    left_s: seconds left after the last sample; null without a clock.
    confidence: probability that the growth continues, 0 to 1; null if unknown.
    rival: the limit of another series that may be reached earlier; "" if the order is clear.
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
    """How much longer the run must be for a verdict.

    more_x: further units of the axis. more_s: further seconds. Both are null if no length is known
    to be enough. why: the reason, as part of a sentence.
    """

    more_x: float | None
    more_s: float | None
    why: str = ""


class KnownSize(enum.Enum):
    """Sizes that the growth of one event may be a multiple of."""

    MODEL = "model"  # the parameters once
    OPTIMIZER_STATE = "optimizer_state"  # what the optimizer keeps per parameter
    TRAINING_STATE = "training_state"  # parameters, gradients and optimizer state
    BATCH = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMatch:
    """Growth that is a multiple of a known size.

    multiple: growth divided by the size. what: what has that size. size_bytes: the size.
    """

    multiple: float
    what: KnownSize
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseGrowth:
    """Growth that falls into one phase.

    phase: name of the phase. events: events of the phase in the growing segment; an event is one
    uninterrupted run of the phase. growing_events: events in which memory grew.
    growth_per_event: mean growth of one growing event.
    spread: standard deviation over mean of the growing events; null below two events.
    share: part of the whole growth, 0 to 1.
    p_value: probability of such a share if growth had nothing to do with phases (permutation by
    rotating each cycle, times the number of phases tested).
    times_elsewhere: growth per unit of the axis inside the phase over that outside it; null if
    nothing grows outside. match: known size that one event's growth is a multiple of, or null.
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
    def is_attributed(self) -> bool:
        """Return True if the phase's growth is repeated, concentrated and not by chance."""
        return (
            self.p_value <= ATTRIBUTION_P_VALUE
            and self.share >= ATTRIBUTION_SHARE
            and self.growing_events
            >= max(ATTRIBUTION_EVENTS, ATTRIBUTION_EVENT_SHARE * self.events)
            and (
                self.times_elsewhere is None or self.times_elsewhere >= ATTRIBUTION_TIMES_ELSEWHERE
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringGrowth:
    """Equal growth in every event of several phases: the amount recurs, no phase stands out.

    phases: names of the phases. events: number of their events. growth_per_event: mean growth.
    least: smallest growth of an event. most: largest growth of an event.
    spread: standard deviation over mean.
    match: known size that the growth is a multiple of, or null.
    """

    phases: tuple[str, ...]
    events: int
    growth_per_event: float
    least: float
    most: float
    spread: float
    match: SizeMatch | None = None


# Heuristic: at most 1% of runs without such a phase attribute growth to one (benchmarks/phases.py).
ATTRIBUTION_P_VALUE = 0.01
ATTRIBUTION_SHARE = 0.25
ATTRIBUTION_EVENTS = 3
ATTRIBUTION_EVENT_SHARE = 0.4
ATTRIBUTION_TIMES_ELSEWHERE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found in one series.

    metric: canonical metric name (`rss_bytes`, `tensors`). column: the column's name in the source.
    process: label of the process; "tree" is the sum over the process tree, "" the only process.
    role: what the metric measures. unit: unit of all values. axis: the horizontal axis.
    verdict: the verdict on this series.
    confidence: probability that the verdict is right, 0 to 1, calibrated (docs/method.md).
    reason: the rule that decided. samples: number of samples.
    first_x: position of the first sample. last_x: position of the last sample.
    start_value: value at the start. latest_value: value at the end. peak_value: highest value.
    segments: the parts with one slope each, in order.
    growth_per_x: growth rate of the last segment per unit of the axis; null if unknown.
    growth_per_s: the same rate per second; null without a clock.
    growth_per_epoch: the same rate per epoch; null if epochs are unknown beside the axis.
    plateau: where growth has stopped; null if it has not.
    onset_x: where the growth of a leak began.
    forecasts: expected values further on. limit_hits: limits that the growth reaches.
    need_more: how much longer the run must be for a verdict; null if there is one.
    phases: growth in each phase. recurring: equal growth in every event, if no phase stands out.
    trace: (x, value) points for plots, at most a few hundred.
    tops: the same of the highest reading at each position; empty if each has one reading.
    peaks_grow: the floor is flat, but the peaks rise.
    restarts: earlier runs of the process that were excluded; the finding is about the last.
    planned: the forecasts are for the planned end of the run.
    dropped_start: samples excluded at the start. dropped_end: samples excluded at the end.
    trail: every argument that was made, in order.
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
    trace: tuple[tuple[float, float], ...] = field(metadata=NOT_IN_JSON)
    tops: tuple[tuple[float, float], ...] = field(default=(), metadata=NOT_IN_JSON)
    growth_per_epoch: Interval | None = None
    peaks_grow: bool = False
    recurring: RecurringGrowth | None = None
    restarts: int = 0
    planned: bool = False
    dropped_start: int = 0
    dropped_end: int = 0
    trail: tuple[Argument, ...] = ()


class EvidenceKind(enum.Enum):
    """The kind of a statement about several series."""

    TENSORS_FLAT = "tensors_flat"  # memory grows, the tensor count does not
    TENSORS_GROW = "tensors_grow"  # the tensor count grows as well
    OBJECTS_GROW = "objects_grow"  # Python's own objects grow as well
    IN_USE_FLAT = "in_use_flat"  # resident grows, memory in use does not: fragmentation
    ALLOCATED_FLAT = "allocated_flat"  # reserved grows, allocated does not: caching
    RESERVED_FLAT = "reserved_flat"  # the driver's value grows, the framework's does not
    HOLES_GROW = "holes_grow"  # the framework's cache is fragmented
    ALLOCATIONS_GROW = "allocations_grow"  # the number of blocks in use grows as well
    ALLOCATIONS_FLAT = "allocations_flat"  # the number does not grow, so the blocks do
    WAITING_GROWS = "waiting_grows"  # freed blocks wait for another stream
    RETRIES_RISE = "retries_rise"  # the allocator released its cache and tried again
    OOMS_RISE = "ooms_rise"  # an allocation failed
    ONE_PROCESS = "one_process"  # the growth is in one process
    PROCESSES_GROW = "processes_grow"  # the number of processes grows
    COUNTER_GROWS = "counter_grows"  # a user's counter grows with the memory
    COUNT_GROWS = "count_grows"  # memory is stable, a count beside it grows
    UNSHARED = "unshared"  # forked workers make copies of the parent's pages
    EARLIER_RUN = "earlier_run"  # an earlier run of the process was excluded


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A statement that combines several series of a recording.

    kind: what it states. subject: the series it is about, as "process metric".
    against: the series it is compared with, or "". supports: the verdict that it supports, or null.
    """

    kind: EvidenceKind
    subject: str
    against: str = ""
    supports: Verdict | None = None


class MemoryKind(enum.Enum):
    """What a leak of host memory consists of."""

    TENSORS = "tensors"  # tensors that Python objects keep
    GRAPH = "graph"  # autograd graphs retained for a possible backward pass
    PYTHON_OBJECTS = "python_objects"  # small objects, in Python's own allocator
    NATIVE = "native"  # from malloc, none of these: arrays, long strings, libraries
    NATIVE_OR_TENSORS = "native_or_tensors"  # from malloc, and tensors were not counted
    HOLES = "holes"  # memory in use is stable: malloc keeps fragmented free memory
    MAPPED = "mapped"  # mapped neither by malloc nor by Python


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaking:
    """The kind of memory that leaks.

    kind: what the growth consists of. share: its part of the growth, 0 to 1; null if unknown.
    """

    kind: MemoryKind
    share: float | None


class Standing(enum.Enum):
    """The result of a budget for a series."""

    KEPT = "kept"
    BROKEN = "broken"
    UNCLEAR = "unclear"  # not measured, or too close to decide; never a pass


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFinding:
    """One budget applied to one series.

    budget: the budget. standing: whether the series is within it.
    metric: metric of the series; "" if no series matches. process: its process.
    unit: unit of the values; null if no series matches.
    measured: the measured value (growth: per interval of the budget); null if nothing was measured.
    why: for `unclear`, what is missing.
    """

    budget: Budget
    standing: Standing
    metric: str
    process: str
    unit: Unit | None
    measured: Interval | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingFinding:
    """What was found in one recording.

    source: file name, "-" for standard input, or the command.
    verdict: the verdict on the recording.
    confidence: probability that the verdict is right, 0 to 1. series: a finding for each series.
    decided_by: index of the series that the verdict rests on; null if nothing was measured.
    evidence: statements that combine several series. notes: what the reader decided or skipped.
    missing: metrics that are unavailable. ending: how the command ended; null if unknown.
    budgets: every budget applied to every series it is for. marks: thresholds that were crossed.
    first_limit: the limit that is reached first; null if none is.
    capacity: memory that the run requires. leaking: kind of memory that leaks; null if unknown.
    early_forecast: the forecast from half of a run that ran out of memory; null for others.
    """

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
    early_forecast: EarlyForecast | None = None

    @property
    def deciding(self) -> Finding | None:
        """The series that the verdict rests on."""
        return None if self.decided_by is None else self.series[self.decided_by]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A source that could not be analyzed.

    source: its name. message: what is wrong. remedy: what to try.
    """

    source: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Everything that one command found: the input of every renderer.

    recordings: one finding for each source, in the order given.
    failures: sources that could not be analyzed.
    """

    recordings: tuple[RecordingFinding, ...]
    failures: tuple[Failure, ...] = ()

    @property
    def budgets(self) -> tuple[BudgetFinding, ...]:
        """Every budget of every recording."""
        return tuple(held for recording in self.recordings for held in recording.budgets)

    @property
    def verdict(self) -> Verdict:
        """The worst of the recordings: LEAK, then INCONCLUSIVE, WARMUP, STABLE."""
        found = {r.verdict for r in self.recordings}
        for verdict in (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE):
            if verdict in found:
                return verdict
        return Verdict.INCONCLUSIVE

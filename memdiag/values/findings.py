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
from memdiag.values.holders import UnreadFunction
from memdiag.values.measurements import Axis, Ending, Mark, Missing, Role, Unavailable, Unit
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.readings import Readings
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
    to be enough. why: the reason, as part of a sentence. is_beyond_plan: the run is planned to end
    before.
    """

    more_x: float | None
    more_s: float | None
    why: str = ""
    is_beyond_plan: bool = False


class KnownSize(enum.Enum):
    """Sizes that the growth of one event may be a multiple of."""

    MODEL = "model"  # the parameters once
    OPTIMIZER_STATE = "optimizer_state"  # what the optimizer keeps per parameter
    TRAINING_STATE = "training_state"  # parameters, gradients and optimizer state
    BATCH = "batch"  # the tensors that a data loader gives at once


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
    falling: the column counts downwards (`available`, `free`): its peak is the lowest value, and
    positive growth is a fall.
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
    falling: bool = False
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaking:
    """The kind of memory that leaks.

    kind: what the growth consists of. share: its part of the growth, 0 to 1; null if unknown.
    """

    kind: MemoryKind
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPart:
    """A part of the growth of a job.

    process: the process that grows. metric: what of it; small Python objects are not part of malloc
    and have a part of their own. growth_per_x: growth rate, bytes per unit of the axis of the
    deciding series. share: its part of the whole, 0 to 1.
    """

    process: str
    metric: str
    growth_per_x: Interval
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeGrowth:
    """The growth of all processes of a job together.

    growth_per_x: growth rate, bytes per unit of the axis of the deciding series.
    growth_per_s: the same rate per second; null without a clock.
    parts: what makes it, the largest first; empty if no process is known to grow.
    """

    growth_per_x: Interval
    growth_per_s: Interval | None
    parts: tuple[GrowthPart, ...]


class Fix(enum.Enum):
    """What usually ends such a growth."""

    DETACH = "detach"  # keep loss.item() or .detach(), not the graph
    NO_GRAD = "no_grad"  # evaluation under torch.no_grad()
    COPY = "copy"  # a copy of the part that is kept, not a view of all
    NO_TRACEBACK = "no_traceback"  # an exception without its traceback
    REMOVE_HOOK = "remove_hook"  # keep the handle, and handle.remove()
    REMOVE_HANDLER = "remove_handler"  # add a handler or callback once, or remove it
    NEW_OPTIMIZER = "new_optimizer"  # a group of parameters ends with the optimizer
    CACHE_SIZE = "cache_size"  # lru_cache with maxsize
    FIXED_SHAPES = "fixed_shapes"  # few shapes for a function that is compiled for each
    CLOSE_FIGURE = "close_figure"  # plt.close(figure)
    CONSUME = "consume"  # take from the queue what is put into it, or bound it
    BOUND_DICTIONARY = "bound_dictionary"  # delete entries, or a cache with a size
    BOUND_SEQUENCE = "bound_sequence"  # aggregate, clear it, or deque(maxlen=...)
    SMALLER_BOUND = "smaller_bound"  # a smaller maxlen or maxsize
    RELEASE = "release"  # free or close what a line gets from a library
    AGGREGATE = "aggregate"  # one array or text that is made larger again and again
    BREAK_CYCLE = "break_cycle"  # objects that refer to themselves
    END_CALLS = "end_calls"  # threads or tasks that wait for ever
    UNLINK = "unlink"  # an object that refers to the one before it


class How(enum.Enum):
    """How a culprit was found."""

    WATCHED = "watched"  # the place was seen to grow at this line
    ALLOCATED = "allocated"  # the line was seen to get what stays; no name leads to that
    SOURCE = "source"  # the place by its growth, the line by the source code
    NAME = "name"  # the place by its growth; no line of the program names it


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A place in the program that keeps memory which grows.

    file: source file of the line; null if no line was found. line: line that adds to the place.
    code: text of the line; null if it was not recorded. function: function of the line.
    holder: the place in words. process: label of its process; of several, the one with most of it.
    processes: labels of all of them if the line is one in several processes, else empty.
    bytes_per_step: what it grows by; null without steps. bytes_per_s: the same per second.
    count_per_step: new items or objects per step; null without steps, or if one object grows.
    share: part of the growth of the job, 0 to 1. since_step: step at which it began to grow; null
    if unknown. how: how it was found. is_certain: false if most of it is what nothing else
    explains, in objects that do not say how much memory they have.
    """

    file: str | None
    line: int | None
    code: str | None
    function: str | None
    holder: str
    process: str
    bytes_per_step: float | None
    bytes_per_s: float
    count_per_step: float | None
    share: float
    since_step: int | None
    how: How
    processes: tuple[str, ...] = ()
    is_certain: bool = True


class Advice(enum.Enum):
    """What an intervention has shown, and if it is worth repeating."""

    USELESS = "useless"  # it returns next to nothing: what there is, is in use
    ONCE = "once"  # only the first one returned something: once after the start is enough
    UNCLEAR = "unclear"  # there was only one, which also returns what the start has left
    CYCLES = "cycles"  # objects in reference cycles gather: break them, or collect regularly
    CACHE = "cache"  # free device memory in torch's cache, which the next steps use again
    HOLES = "holes"  # free memory that malloc holds, which the next steps use again


@dataclass(frozen=True, slots=True, kw_only=True)
class Freed:
    """One intervention.

    at_s: seconds after the start. step: its step; null before the first.
    took_s: how long the program waited. returned_bytes: what came back, in use or to the system;
    null if unknown. returned_device_bytes: the same of devices; null if unknown.
    before: metrics of the process before it. after: the same metrics after it.
    """

    at_s: float
    step: int | None
    took_s: float
    returned_bytes: int | None
    returned_device_bytes: int | None
    before: dict[str, int]
    after: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionFinding:
    """What an intervention has returned, and what it costs (`memdiag run --intervene`).

    process: label of the process. action: `gc_collect`, `empty_cache` or `malloc_trim`.
    advice: if it is worth repeating. times: each of them, in order of time.
    returned_bytes: what one returned, the median of all but the first; null if unknown.
    returned_device_bytes: the same of devices; null if unknown.
    returned_per_step: bytes that one returned per step since the one before; null if unknown, and
    with one only.
    took_s: how long the program waited for one, the median. step_s: length of a step; null if
    unknown.
    """

    process: str
    action: str
    advice: Advice
    times: tuple[Freed, ...]
    returned_bytes: int | None
    returned_device_bytes: int | None
    returned_per_step: float | None
    took_s: float
    step_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthCause:
    """What keeps the memory that leaks, and what came back when memory was freed.

    kind: what the growth consists of; null if unknown, and without a leak.
    share_explained: part of the growth that the places found hold, 0 to 1; null if none were looked
    for, and without a leak.
    culprits: the places, the largest first; empty if they hold less than half of the growth.
    fix: what usually ends such a growth; null if unknown.
    interventions: what each way to free memory has returned; empty without `--intervene`.
    unread: running functions whose local variables were not read, if no place was found.
    """

    kind: MemoryKind | None
    share_explained: float | None
    culprits: tuple[Culprit, ...]
    fix: Fix | None
    interventions: tuple[InterventionFinding, ...] = ()
    unread: tuple[UnreadFunction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownPlace:
    """A place in the program that grew while it was looked at.

    holder: the place in words. process: label of its process. size: items, objects or bytes in it.
    unit: what `size` counts. grown_bytes: what it grew by. since_step: the step at which it was
    first looked at; null without steps. still_grows: false if it barely grew at the end.
    file: source file of the line that adds to it; null if no line was found. line: that line.
    code: text of the line; null if it was not recorded. function: function of the line.
    """

    holder: str
    process: str
    size: float
    unit: str
    grown_bytes: float
    since_step: int | None
    file: str | None
    line: int | None
    code: str | None
    function: str | None
    still_grows: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemory:
    """Tensors or arrays that are alike, at one place.

    name: what one writes to reach it; "" if no name leads to it. holder: the place in words.
    inside: if no name leads to it, the class of an object that holds one of them; "" if unknown.
    type: class of the tensors.
    shape: their shape. dtype: their element type. device: where they are.
    count: how many there are. size_bytes: of their storages. has_graph: they have autograd graphs.
    grown_bytes: growth since the census before; null without one.
    """

    name: str
    holder: str
    inside: str
    type: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    count: int
    size_bytes: int
    has_graph: bool
    grown_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectType:
    """Objects of one type.

    type: name of the type. count: how many there are.
    size_bytes: of the objects themselves, and of the storages of tensors.
    grown_count: growth of `count` since the census before; null without one.
    grown_bytes: growth of `size_bytes` since then.
    """

    type: str
    count: int
    size_bytes: int
    grown_count: int | None
    grown_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusFinding:
    """What was in memory in a process at its last census.

    process: label of the process. why: why the census was taken: `out_of_memory`, `critical` (a
    threshold was crossed), `request`, `regular`.
    at_s: seconds after the start. step: step of the census; null before the first.
    since_step: step of the census before, the first since memory stabilized; null without one.
    since_s: its time; null without one. tensors: tensors that Python knows of.
    tensor_bytes: bytes of their storages. groups: the largest groups of tensors and arrays.
    types: the types with most bytes. allocators: readings of the frameworks' allocators.
    notes: what was not counted.
    """

    process: str
    why: str
    at_s: float
    step: int | None
    since_step: int | None
    since_s: float | None
    tensors: int
    tensor_bytes: int
    groups: tuple[InMemory, ...]
    types: tuple[ObjectType, ...]
    allocators: dict[str, int]
    notes: tuple[str, ...]


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
    growth: growth of a leak of host memory in all processes; null for others.
    early_forecast: the forecast from half of a run that ran out of memory; null for others.
    cause: what keeps the memory that leaks; null for other verdicts, and if it was not looked for,
    unless memory was freed (`interventions`).
    grown: places in the program that grew, the largest first, if memory or a signal ended the run,
    or with a census; empty for others. census: what was in memory, by process.
    readings: what pictures show beside the findings; None unless they were requested.
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
    growth: WholeGrowth | None = None
    early_forecast: EarlyForecast | None = None
    cause: GrowthCause | None = None
    grown: tuple[GrownPlace, ...] = ()
    census: tuple[CensusFinding, ...] = ()
    readings: Readings | None = field(default=None, metadata=NOT_IN_JSON)

    @property
    def deciding(self) -> Finding | None:
        """The series that the verdict rests on."""
        return None if self.decided_by is None else self.series[self.decided_by]

    @property
    def unmeasured(self) -> Unavailable | None:
        """Why no memory was recorded; None if some was, or if that is not known."""
        reasons = (one.why for one in self.missing if one.metric == "rss_bytes")
        return next(reasons, None) if self.decided_by is None else None

    @property
    def is_empty(self) -> bool:
        """Return True if nothing was recorded: no memory, no cause of the end, nothing to note."""
        has_cause = self.ending is not None and self.ending.cause is not None
        return self.decided_by is None and not (self.notes or has_cause)


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

"""The values that the halves of memdiag share: what was recorded.

Everything here is frozen and keyword-only. Arrays are numpy arrays, but this module does not import
numpy at run time, which would slow the start of the command line.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from memdiag.values.holders import ProcessCensuses, ProcessHolders, ProcessInterventions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class Unit(enum.Enum):
    """What a reading counts. Canonical column names end in the unit, counts carry none."""

    BYTES = "bytes"
    COUNT = "count"
    PERCENT = "percent"


class AxisKind(enum.Enum):
    """The unit of the horizontal axis. Warm-ups last differently long on each."""

    STEP = "step"  # optimizer steps, iterations, batches
    EPOCH = "epoch"  # passes over the data
    SECONDS = "seconds"  # monotonic or wall time, always converted to seconds
    REQUEST = "request"  # requests, queries, calls: many small units of work
    INDEX = "index"  # cycles, samples, dumps: only the order is known
    TICK = "tick"  # samples of a monitor at an unknown interval


class Role(enum.Enum):
    """What a metric measures. It decides how growth is read; the name alone never does."""

    RESIDENT = "resident"  # RSS: pages in RAM, fragmentation included
    UNIQUE = "unique"  # USS: pages of this process alone
    PROPORTIONAL = "proportional"  # PSS: shared pages divided among their users
    DEVICE = "device"  # VRAM as the driver counts it
    DEVICE_RESERVED = "device_reserved"  # held by the framework's caching allocator
    DEVICE_ALLOCATED = "device_allocated"  # in use by live tensors
    IN_USE = "in_use"  # malloc or tensor bytes in use: nearly exact
    COLLECTED_HEAP = "collected_heap"  # a garbage-collected heap's used part
    VIRTUAL = "virtual"  # address space: not memory by itself
    SWAP = "swap"
    HOST = "host"  # a whole machine's memory, other tenants included
    CACHE = "cache"  # page cache: reclaimable
    HOLES = "holes"  # free, but too fragmented for larger blocks
    PEAK = "peak"  # a running maximum: can never fall
    TENSORS = "tensors"  # number of live tensors
    OBJECTS = "objects"  # number of live objects, blocks, handles
    PROCESSES = "processes"
    EVENTS = "events"  # how often something has happened: can never fall
    COUNTER = "counter"  # the user's own counter


ON_DEVICE = frozenset({Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED})
"""Roles of the memory of devices, by whoever counts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A reading that could not be taken. Never 0, never filled in.

    reason: why. remedy: what to do about it, or "".
    """

    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The horizontal axis of a series.

    name: the column's name as found. kind: its unit.
    """

    name: str
    kind: AxisKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Phase of each sample of a series.

    codes: int array, shape (n,), index into `names`, -1 where no phase is tagged.
    names: phase names as tagged, nested ones joined by "/".
    """

    codes: Ints
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One metric of one process over one axis.

    metric: canonical column name (`rss_bytes`, `tensors`, `host_used_percent`).
    column: the column's name in the source (`RSS (MB)`).
    process: label of the process ("tree" for the whole tree's total, "main", "rank0",
        "worker 4711", "" where the source knows only one).
    x: positions on the axis, shape (n,), in the axis's unit; NaN where untagged
        (samples before the first step). Neither unique nor sorted in general.
    y: readings, shape (n,), in `unit`; NaN where missing.
    at_s: monotonic seconds of each sample, shape (n,), or None without a clock.
    generation: which run of the process a sample belongs to (0, 1, ...; it increases when the
        pid changes), shape (n,), or None.
    phases: phase tags, or None.
    falling: the column counts downwards (`available`, `free`).
    may_be_free: its name has a word that is not known, and may say the same.
    resolution: the rounding of the values in `unit` (printed in MB: 1e6), 0 if unknown.
    x_per_epoch: length of one epoch on the axis, None if unknown or if the axis counts epochs.
    is_rank: the process is a rank of a distributed job.
    ends_with_work: readings from after the end of its program, which frees memory, were left out.
    unread_share: part, 0..1, of the column's cells with text that could not be read as numbers, or
        of the sizes of a log's lines where only the place of one shows that it is meant.
    """

    metric: str
    column: str
    role: Role
    unit: Unit
    axis: Axis
    x: Floats
    y: Floats
    process: str = ""
    at_s: Floats | None = None
    generation: Ints | None = None
    phases: Phases | None = None
    falling: bool = False
    may_be_free: bool = False
    resolution: float = 0.0
    x_per_epoch: float | None = None
    is_rank: bool = False
    ends_with_work: bool = False
    unread_share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A size at which the run fails, for series of the given roles.

    metric: if set, the limit is for series of this metric only (one GPU's part of a tree that uses
    several).
    per_process: each process has the limit for itself; it does not apply to the sum of a tree.
    """

    name: str  # "host RAM", "GPU 0", "--limit", "cgroup memory.max"
    value_bytes: int
    roles: frozenset[Role]
    metric: str = ""
    per_process: bool = False

    def holds_for(self, metric: str, process: str) -> bool:
        """Return True if the limit applies to a series of this metric and process."""
        return self.metric in {"", metric} and not (self.per_process and process == "tree")


class MarkLevel(enum.Enum):
    """Which threshold of the user was crossed."""

    WARNING = "warning"  # --warn-at
    CRITICAL = "critical"  # --critical-at


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Memory crossed a threshold for the first time.

    level: which threshold. threshold: as given, with its option ("--warn-at 80%").
    threshold_bytes: its size. at_s: seconds after the start. metric: metric that crossed it.
    process: process of the metric. value_bytes: the reading. step: step of the reading, or null.
    phase: phase of the reading, or "".
    limit: name of the limit that a percentage refers to; "" if the threshold is a size.
    left_s: seconds until the limit at this growth rate, if the threshold is such a time; else null.
    """

    level: MarkLevel
    threshold: str
    threshold_bytes: int
    at_s: float
    metric: str
    process: str
    value_bytes: int
    step: int | None = None
    phase: str = ""
    limit: str = ""
    left_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A metric that is unavailable for a process.

    metric: canonical name. process: label of the process. why: the reason.
    """

    metric: str
    process: str
    why: Unavailable


class Cause(enum.Enum):
    """How memory ended a target."""

    OOM_KILLER = "oom_killer"  # the kernel killed it
    OOM_KILLER_NEAR = "oom_killer_near"  # killed while the kernel killed another process for memory
    DEVICE_MEMORY = "device_memory"  # an allocation on a device failed
    HOST_MEMORY = "host_memory"  # an allocation of host memory failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the recorded target ended.

    code: exit status, or null. signal: signal that killed it, or null.
    why: what is known beside the status, as part of a sentence.
    cause: how memory ended it; null if it did not.
    detail: the last error that the target printed about memory (untrusted text).
    at_bytes: memory at the last reading. limit_bytes: the limit that was reached.
    """

    code: int | None = None
    signal: int | None = None
    why: str = ""  # "killed by the kernel's OOM killer", "memdiag stopped watching", ...
    cause: Cause | None = None
    detail: str = ""
    at_bytes: int | None = None
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProgram:
    """A running process. command: as it was typed (untrusted text). age_s: since its start."""

    pid: int
    command: str
    rss_bytes: int
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FillLevel:
    """How many items something has that holds a limited number: `replay 620/1000` in a log.

    name: as in the source. x: positions on the axis, shape (n,); items: shape (n,), NaN where
    missing. capacity: the most that it holds, infinite where the log does not say it.
    """

    name: str
    x: Floats
    items: Floats
    capacity: float


NOT_READ = "not read as memory in use: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What was recorded from one source, ready for analysis.

    source: file name, or "-" for standard input, or the command of a live recording.
    notes: what the reader decided or skipped, one sentence each (plain text, untrusted parts
    already made printable); that with sizes that were not read begins with `NOT_READ`.
    about: the sidecar's content (command, host, versions, memdiag's own cost), plain JSON values.
    planned_x: the last position that the run is planned to reach on the axis, if known.
    fill_levels: what a log says of buffers and caches that hold a limited number of items.
    holders: the places in the program that grew, by process. censuses: what was in memory.
    interventions: what came back when memory was freed.
    """

    source: str
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    limits: tuple[Limit, ...] = ()
    marks: tuple[Mark, ...] = ()
    ending: Ending | None = None
    planned_x: float | None = None
    fill_levels: tuple[FillLevel, ...] = ()
    holders: tuple[ProcessHolders, ...] = ()
    censuses: tuple[ProcessCensuses, ...] = ()
    interventions: tuple[ProcessInterventions, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)


# A process that ends sooner is a helper: recorded and counted in the tree's total, but not judged
# by itself. A job that forks hundreds of them would otherwise have hundreds of series of two
# samples. Heuristic.
YOUNG_S = 1.0


class Sample(NamedTuple):
    """One process (or the whole tree) at one moment: one row of a native recording.

    A tuple, because it is made a hundred times a second and a dataclass takes twice the time.

    at_s: monotonic seconds since the recording began.
    pid, process: the process; `process` is "tree" for the row that holds the tree's total.
    step: the current step, None before the first tag.
    phase: current phase, nested ones joined by "/", or "".
    readings: canonical metric -> value. A metric that could not be read is absent, not 0.
    young: the process is younger than YOUNG_S, and only its name is known.
    """

    at_s: float
    pid: int
    process: str
    readings: dict[str, int | float]
    step: int | None = None
    phase: str = ""
    young: bool = False


class Ability(enum.Enum):
    """What can be measured on this machine."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    FACT = "fact"  # neither good nor bad: a version, a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was checked on this machine.

    name: identifier, stable across versions (`host_memory`, `gpu_0`).
    title: a word or two for a person.
    text: one sentence; `{key}` stands for a fact, which is formatted by the renderer.
    facts: plain JSON values; sizes are bytes and their keys end in `_bytes`. Untrusted text.
    remedy: how to make it available, "" if there is nothing to do.
    """

    name: str
    title: str
    ability: Ability
    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    remedy: str = ""

"""The values that the halves of memdiag share: what was recorded.

Everything here is frozen and keyword-only. Arrays are numpy arrays, but this module never
imports numpy at run time, so that it stays free for the command line's start-up.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

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
    """The natural unit of the horizontal axis; warm-ups last differently long on each."""

    STEP = "step"  # optimizer steps, iterations, batches
    EPOCH = "epoch"  # passes over the data
    SECONDS = "seconds"  # monotonic or wall time, always converted to seconds
    REQUEST = "request"  # requests, queries, calls: many small units of work
    INDEX = "index"  # cycles, samples, dumps: nothing is known but the order
    TICK = "tick"  # looks of a monitor by the clock, at an interval that nobody told


class Role(enum.Enum):
    """What a metric measures; decides how its growth is read, never its name alone."""

    RESIDENT = "resident"  # RSS: pages in RAM, with the allocator's holes
    UNIQUE = "unique"  # USS: pages of this process alone
    PROPORTIONAL = "proportional"  # PSS: shared pages divided among their users
    DEVICE = "device"  # VRAM as the driver counts it
    DEVICE_RESERVED = "device_reserved"  # held by the framework's caching allocator
    DEVICE_ALLOCATED = "device_allocated"  # in use by live tensors
    IN_USE = "in_use"  # malloc or tensor bytes in use: nearly exact
    COLLECTED_HEAP = "collected_heap"  # a garbage-collected heap's used part
    VIRTUAL = "virtual"  # address space: no memory by itself
    SWAP = "swap"
    HOST = "host"  # a whole machine's memory, other tenants included
    CACHE = "cache"  # page cache: reclaimable
    HOLES = "holes"  # free, but in pieces that larger blocks do not fit into
    PEAK = "peak"  # a running maximum: can never fall
    TENSORS = "tensors"  # number of live tensors
    OBJECTS = "objects"  # number of live objects, blocks, handles
    PROCESSES = "processes"
    EVENTS = "events"  # how often something has happened: can never fall
    COUNTER = "counter"  # the user's own counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A reading that could not be taken. Never 0, never filled in."""

    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The horizontal axis of a series. `name` is the column's name as found."""

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
        (samples before the first step). Not necessarily unique or sorted.
    y: readings, shape (n,), in `unit`; NaN where missing.
    at_s: monotonic seconds of each sample, shape (n,), or None where the source has no clock.
    generation: which incarnation of the process a sample belongs to (0, 1, ...; it steps where
        the pid changes), shape (n,), or None.
    phases: phase tags, or None.
    falling: the column counts downwards (`available`, `free`): less is more memory in use.
    resolution: the step of the printed figures in `unit` (1 MB prints: 1e6), 0 where unknown.
    x_per_epoch: what one pass over the data takes on the axis, None where the source does not say
        or the axis itself counts epochs.
    is_rank: the process is a rank of a distributed job.
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
    resolution: float = 0.0
    x_per_epoch: float | None = None
    is_rank: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A ceiling that growth runs into, for series of the given roles.

    metric: where set, the limit is for series of this metric alone (one GPU's part of a tree that
        is on several).
    per_process: each process has it to itself; it says nothing of a tree's sum.
    """

    name: str  # "host RAM", "GPU 0", "--limit", "cgroup memory.max"
    value_bytes: int
    roles: frozenset[Role]
    metric: str = ""
    per_process: bool = False

    def holds_for(self, metric: str, process: str) -> bool:
        """Whether it is a ceiling for a series of this metric and process, if the role fits."""
        return self.metric in {"", metric} and not (self.per_process and process == "tree")


class MarkLevel(enum.Enum):
    """Which of the user's thresholds was passed."""

    WARNING = "warning"  # --warn-at
    CRITICAL = "critical"  # --critical-at


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Memory passed a threshold of the user's, for the first time.

    threshold: as given, with its option ("--warn-at 80%").
    at_s, step, phase, metric, process, value_bytes: the reading that did (as in `Sample`).
    limit: name of the limit that a percentage is of, "" where the threshold is an amount.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A metric that a recording lacks for a process, and why."""

    metric: str
    process: str
    why: Unavailable


class Cause(enum.Enum):
    """How memory ended a target."""

    OOM_KILLER = "oom_killer"  # the kernel killed it
    OOM_KILLER_NEAR = "oom_killer_near"  # killed while the kernel killed somebody for memory
    DEVICE_MEMORY = "device_memory"  # an allocation on a device failed
    HOST_MEMORY = "host_memory"  # an allocation of host memory failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the recorded target ended. One of `code` and `signal` is set when it is known.

    cause: where memory ended it. detail: what the target itself said of that (untrusted text).
    at_bytes, limit_bytes: how much it then held at the last reading and how much it was allowed,
        as far as known.
    """

    code: int | None = None
    signal: int | None = None
    why: str = ""  # "killed by the kernel's OOM killer", "memdiag stopped watching", ...
    cause: Cause | None = None
    detail: str = ""
    at_bytes: int | None = None
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What was recorded from one source, ready for analysis.

    source: file name, or "-" for standard input, or the command for a live one.
    notes: what the reader had to decide or skip, one sentence each (plain text, untrusted
        parts already made printable).
    about: the sidecar's content (command, host, versions, memdiag's own cost), plain JSON values.
    planned_x: the last position the run is planned to reach on the axis, where known.
    """

    source: str
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    limits: tuple[Limit, ...] = ()
    marks: tuple[Mark, ...] = ()
    ending: Ending | None = None
    planned_x: float | None = None
    about: dict[str, Any] = field(default_factory=dict)


# A process that ends before it has lived this long is a helper: recorded, counted in the tree's
# total, not judged by itself. A job that forks hundreds of them would else bring hundreds of series
# of two samples. Chosen.
YOUNG_S = 1.0


class Sample(NamedTuple):
    """One process (or the whole tree) at one moment: one row of a native recording.

    A tuple, because a hundred are made a second: that takes half the time.

    at_s: monotonic seconds since the recording began.
    pid, process: the process; `process` is "tree" for the row that holds the tree's total.
    step: the job's current step, None before the first tag.
    phase: current phase, nested ones joined by "/", "" where none is tagged.
    readings: canonical metric -> value. A metric that could not be read is absent, not 0.
    young: the process has lived for less than YOUNG_S, and nothing is known of it but its name.
    """

    at_s: float
    pid: int
    process: str
    readings: dict[str, int | float]
    step: int | None = None
    phase: str = ""
    young: bool = False


class Ability(enum.Enum):
    """Whether something can be measured here."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    FACT = "fact"  # neither good nor bad: a version, a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at on this machine.

    name: identifier, stable across versions (`host_memory`, `gpu_0`).
    title: a word or two for a person.
    text: one sentence; `{key}` stands for a fact, which is formatted where it is shown.
    facts: plain JSON values; sizes are bytes and their keys end in `_bytes`. Untrusted text.
    remedy: how to get it, "" where there is nothing to do.
    """

    name: str
    title: str
    ability: Ability
    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    remedy: str = ""

"""The words of the report for every member of the enumerations."""

from __future__ import annotations

import re

from memdiag.values.findings import EvidenceKind
from memdiag.values.measurements import Axis, AxisKind, Role
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.verdict import Reason, Verdict

# Colors that are readable on dark and light backgrounds.
STYLES = {
    Verdict.STABLE: "green",
    Verdict.WARMUP: "green",
    Verdict.LEAK: "red",
    Verdict.INCONCLUSIVE: "magenta",
}

# Shown beside a verdict.
REASONS = {
    Reason.FLAT: "flat",
    Reason.PLATEAU: "stabilized",
    Reason.FALLING: "falling",
    Reason.BOUNDED_CYCLES: "fluctuates around a stable baseline",
    Reason.NEGLIGIBLE: "grows too slowly to matter",
    Reason.UNSHARED: "bounded, workers copy shared pages",
    Reason.GROWTH_AFTER_PLATEAU: "grows again after a plateau",
    Reason.OUTLASTS_WARMUP: "grows longer than warm-ups do",
    Reason.REGULAR_GROWTH: "grows by equal amounts",
    Reason.EXACT_METRIC: "an exact metric grows",
    Reason.TOO_FEW_SAMPLES: "too few samples",
    Reason.STILL_CLIMBING: "still growing, no plateau yet",
    Reason.SLOWING: "still growing, but slowing down",
    Reason.IRREGULAR: "grows irregularly",
    Reason.RECENT_STEP: "last step up is too recent",
    Reason.RECLAIMED_BEFORE: "as much was released before",
    Reason.UNCERTAIN_TREND: "growth possible but not confirmed",
    Reason.AT_LIMIT: "flat only because a limit is reached",
    Reason.UNREAD_CELLS: "too many cells could not be read",
    Reason.MAY_BE_FREE: "falls, and may be free memory",
    Reason.FEW_PAGES: "growth may be start-up only",
    Reason.FILLING: "may be a fixed-size buffer filling up",
    Reason.NOT_COLLECTED: "garbage rarely collected so far",
    Reason.NOT_MEMORY: "not a memory metric",
    Reason.OVERRULED: "a more exact metric decides",
}

ROLES = {
    Role.RESIDENT: "memory resident in RAM",
    Role.UNIQUE: "RAM of this process only",
    Role.PROPORTIONAL: "RAM, shared pages divided",
    Role.DEVICE: "GPU memory as counted by the driver",
    Role.DEVICE_RESERVED: "GPU memory reserved by the framework",
    Role.DEVICE_ALLOCATED: "GPU memory of live tensors",
    Role.IN_USE: "memory in use",
    Role.COLLECTED_HEAP: "garbage-collected heap",
    Role.VIRTUAL: "address space",
    Role.SWAP: "swapped-out memory",
    Role.HOST: "memory of the whole machine",
    Role.CACHE: "page cache",
    Role.HOLES: "fragmented free memory",
    Role.EVENTS: "number of events",
    Role.PEAK: "running maximum",
    Role.TENSORS: "live tensors",
    Role.OBJECTS: "live objects",
    Role.PROCESSES: "number of processes",
    Role.COUNTER: "counter",
}

# {subject} and {against} are series: the one that grows, and the one it is compared with.
EVIDENCE = {
    EvidenceKind.TENSORS_FLAT: (
        "The number of {against} is stable: none accumulate that Python can see."
    ),
    EvidenceKind.TENSORS_GROW: "The number of {against} grows as well.",
    EvidenceKind.OBJECTS_GROW: "Python's own objects grow as well ({against}).",
    EvidenceKind.IN_USE_FLAT: (
        "Memory in use ({against}) is stable: the allocator holds the growth, in pools and in "
        "free blocks between blocks in use."
    ),
    EvidenceKind.ALLOCATED_FLAT: (
        "Memory of live tensors ({against}) is stable: the framework's cache of freed blocks grew."
    ),
    EvidenceKind.RESERVED_FLAT: (
        "Memory that the framework reserved ({against}) is stable: the growth is outside of it."
    ),
    EvidenceKind.HOLES_GROW: (
        "Fragmented free memory ({against}) grows with it: the cache is fragmented."
    ),
    EvidenceKind.ALLOCATIONS_GROW: (
        "The number of blocks in use ({against}) grows as well: more and more tensors are kept, "
        "including those that no Python object refers to."
    ),
    EvidenceKind.ALLOCATIONS_FLAT: (
        "The number of blocks in use ({against}) is stable: the same number of tensors gets larger."
    ),
    EvidenceKind.WAITING_GROWS: (
        "Live tensors are stable, but freed blocks wait for another stream ({against})."
    ),
    EvidenceKind.RETRIES_RISE: (
        "The device was full ({subject} rose): the framework released its cache and retried, which "
        "is slow."
    ),
    EvidenceKind.OOMS_RISE: (
        "An allocation on the device failed ({subject} rose); the program handled it or ended."
    ),
    EvidenceKind.ONE_PROCESS: "The growth is in one process only: {subject}.",
    EvidenceKind.PROCESSES_GROW: "The number of processes grows.",
    EvidenceKind.COUNTER_GROWS: "{subject} grows together with {against}.",
    EvidenceKind.COUNT_GROWS: (
        "The number of {against} grows nevertheless: they are small, or share their memory."
    ),
    EvidenceKind.UNSHARED: (
        "Workers are un-sharing the parent's data ({subject} grew, {against} did not): to read a "
        "Python object is to write its reference count, and a forked process that writes to a page "
        "gets a copy of it."
    ),
    EvidenceKind.EARLIER_RUN: (
        "The process was restarted: the verdict is about its last run, without those before."
    ),
}

# After "Kind of memory that grows: ".
LEAKING = {
    MemoryKind.TENSORS: "tensors that Python objects keep",
    MemoryKind.GRAPH: "autograd graphs retained for a possible backward pass",
    MemoryKind.CYCLES: "objects in reference cycles that nothing refers to and Python never frees",
    MemoryKind.PYTHON_OBJECTS: "small Python objects",
    MemoryKind.NATIVE: (
        "native memory (malloc), not tensors, graphs or small Python objects: arrays, long "
        "strings, libraries and extensions"
    ),
    MemoryKind.NATIVE_OR_TENSORS: (
        "native memory (malloc), not small Python objects: tensors, arrays, long strings, libraries"
    ),
    MemoryKind.HOLES: "free memory that malloc keeps, fragmented by blocks in use",
    MemoryKind.MAPPED: (
        "pages from neither malloc nor Python: mapped files, shared memory, or a library's own "
        "allocator"
    ),
}

_METRICS = {
    "rss_bytes": "RSS",
    "uss_bytes": "USS",
    "pss_bytes": "PSS",
    "cgroup_anon_bytes": "cgroup memory",
    "vram_bytes": "VRAM",
    "swap_bytes": "swap",
    "tensors": "tensors",
    # Available only with the probe in the process.
    "probe_readings": "steps, tensors and memory in use",
}
EPOCH = "epoch"
IN_USE = "memory in use"
_AXIS_WORDS = {
    AxisKind.STEP: "step",
    AxisKind.EPOCH: EPOCH,
    AxisKind.SECONDS: "second",
    AxisKind.REQUEST: "request",
    AxisKind.INDEX: "sample",
    AxisKind.TICK: "sample",
}
# Kinds whose column name may be the better word ("cycle", "query").
_NAMED_KINDS = frozenset({AxisKind.REQUEST, AxisKind.INDEX})
_WORD = re.compile(r"[a-z]{3,12}(?<!index)(?<!s)")


def metric(name: str) -> str:
    """Name of a canonical metric: `RSS`, `heap_used`, `tensors`. Not made printable."""
    return _METRICS.get(name) or name.removesuffix("_bytes").removesuffix("_percent")


def is_own(name: str) -> bool:
    """Return True if memdiag has a name of its own for the metric."""
    return name in _METRICS


def process(name: str) -> str:
    """Name of a process, empty if the source has only one. Not made printable."""
    return "all processes" if name == "tree" else name


def one(which: Axis) -> str:
    """A unit of an axis with its article: `a step`, `an epoch`."""
    word = axis(which)
    return f"{'an' if word[0] in 'aeiouAEIOU' else 'a'} {word}"


def axis(which: Axis, number: float = 1) -> str:
    """The word for this many units of an axis: `step`, `steps`, `cycles`."""
    word = _AXIS_WORDS[which.kind]
    if which.kind in _NAMED_KINDS and _WORD.fullmatch(_singular(which.name)):
        word = _singular(which.name)
    elif which.kind is AxisKind.REQUEST and "req" not in which.name.lower():
        word = "unit"  # the column's name has no meaning for a reader
    if number == 1:
        return word
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("tch", "sh")) else "s")


def _singular(name: str) -> str:
    """`message` for `messages`, `query` for `queries`; other words as they are."""
    name = re.sub("ies$", "y", name)
    return re.sub("(?<![siu])(?<!(?:ss|ch|sh)e)s$", "", name)

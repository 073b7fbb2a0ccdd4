"""The words of the report for every member of the closed sets. Complete: a test walks them."""

from __future__ import annotations

import re

from memdiag.values.findings import EvidenceKind, MemoryKind
from memdiag.values.measurements import Axis, AxisKind, Role
from memdiag.values.verdict import Reason, Verdict

VERDICTS = {
    Verdict.STABLE: "STABLE",
    Verdict.WARMUP: "WARMUP",
    Verdict.LEAK: "LEAK",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
}

# Colours that stand on a dark and on a light background alike.
STYLES = {
    Verdict.STABLE: "green",
    Verdict.WARMUP: "green",
    Verdict.LEAK: "red",
    Verdict.INCONCLUSIVE: "magenta",
}

# Beside a verdict, in a few words.
REASONS = {
    Reason.FLAT: "flat",
    Reason.PLATEAU: "settled",
    Reason.FALLING: "falling",
    Reason.BOUNDED_CYCLES: "swings on a flat floor",
    Reason.NEGLIGIBLE: "grows too little to matter",
    Reason.GROWTH_AFTER_PLATEAU: "grows again after a plateau",
    Reason.OUTLASTS_WARMUP: "grows longer than warm-ups",
    Reason.REGULAR_GROWTH: "grows by equal amounts",
    Reason.EXACT_METRIC: "an exact meter grows",
    Reason.TOO_FEW_SAMPLES: "too few samples",
    Reason.STILL_CLIMBING: "still climbing, no plateau yet",
    Reason.SLOWING: "still climbing, but slowing",
    Reason.IRREGULAR: "grows irregularly",
    Reason.RECENT_STEP: "last step up too recent",
    Reason.RECLAIMED_BEFORE: "as much was given back before",
    Reason.UNCERTAIN_TREND: "growth possible, not shown",
    Reason.AT_LIMIT: "flat only because at a limit",
    Reason.FEW_PAGES: "no more than pages touched",
    Reason.FILLING: "a record of fixed length may fill",
    Reason.NOT_COLLECTED: "heap hardly collected yet",
    Reason.NOT_MEMORY: "its growth proves nothing",
    Reason.OVERRULED: "a more exact meter decides",
}

ROLES = {
    Role.RESIDENT: "memory resident in RAM",
    Role.UNIQUE: "RAM of this process alone",
    Role.PROPORTIONAL: "RAM, shared pages divided",
    Role.DEVICE: "GPU memory, as the driver counts it",
    Role.DEVICE_RESERVED: "GPU memory held by the framework's allocator",
    Role.DEVICE_ALLOCATED: "GPU memory of live tensors",
    Role.IN_USE: "memory in use",
    Role.COLLECTED_HEAP: "garbage-collected heap",
    Role.VIRTUAL: "address space",
    Role.SWAP: "swapped-out memory",
    Role.HOST: "memory of the whole machine",
    Role.CACHE: "page cache",
    Role.HOLES: "memory free only in pieces",
    Role.EVENTS: "how often it has happened",
    Role.PEAK: "running maximum",
    Role.TENSORS: "live tensors",
    Role.OBJECTS: "live objects",
    Role.PROCESSES: "number of processes",
    Role.COUNTER: "counter",
}

# {subject} and {against} name series: what grows, and what is held against it.
EVIDENCE = {
    EvidenceKind.TENSORS_FLAT: (
        "The number of {against} is steady: none accumulate that Python can see."
    ),
    EvidenceKind.TENSORS_GROW: "The number of {against} grows as well.",
    EvidenceKind.OBJECTS_GROW: "Python's own objects grow as well ({against}).",
    EvidenceKind.IN_USE_FLAT: (
        "Memory in use ({against}) is steady: what grew is held by the allocator, in pools and "
        "in holes between blocks."
    ),
    EvidenceKind.ALLOCATED_FLAT: (
        "Memory of live tensors ({against}) is steady: what grew is the framework's cache of "
        "freed blocks."
    ),
    EvidenceKind.RESERVED_FLAT: (
        "What the framework holds of the device ({against}) is steady: what grew is outside of it."
    ),
    EvidenceKind.HOLES_GROW: (
        "What is free in pieces only ({against}) grows with it: the cache is fragmented."
    ),
    EvidenceKind.ALLOCATIONS_GROW: (
        "The number of blocks in use ({against}) grows as well: more and more tensors are held, "
        "those included that no Python object holds."
    ),
    EvidenceKind.ALLOCATIONS_FLAT: (
        "The number of blocks in use ({against}) is steady: as many tensors as before get larger."
    ),
    EvidenceKind.WAITING_GROWS: (
        "Live tensors are steady, but freed blocks wait for another stream ({against})."
    ),
    EvidenceKind.RETRIES_RISE: (
        "The device was full ({subject} rose): the framework gave back its cache and tried again, "
        "which is slow."
    ),
    EvidenceKind.OOMS_RISE: (
        "An allocation on the device failed ({subject} rose), and the program went on or ended."
    ),
    EvidenceKind.ONE_PROCESS: "The growth is in one process alone: {subject}.",
    EvidenceKind.PROCESSES_GROW: "The number of processes grows.",
    EvidenceKind.COUNTER_GROWS: "{subject} grows together with {against}.",
    EvidenceKind.COUNT_GROWS: (
        "The number of {against} grows all the same: they are small, or share what they hold."
    ),
    EvidenceKind.EARLIER_RUN: (
        "An earlier run of the process was set apart; the verdict is about the last one."
    ),
}

# After "What grows: ".
LEAKING = {
    MemoryKind.TENSORS: "tensors that Python objects keep",
    MemoryKind.GRAPH: "what autograd keeps for backward passes that may still come",
    MemoryKind.PYTHON_OBJECTS: "small Python objects",
    MemoryKind.NATIVE: (
        "memory from malloc in no tensor, graph or small Python object: arrays, long strings, "
        "libraries and extensions"
    ),
    MemoryKind.NATIVE_OR_TENSORS: (
        "memory from malloc in no small Python object: tensors, arrays, long strings, libraries"
    ),
    MemoryKind.HOLES: "what malloc keeps free, in pieces between blocks in use",
    MemoryKind.MAPPED: (
        "pages that come neither from malloc nor from Python: mapped files, shared memory, or a "
        "library's own allocator"
    ),
}

_METRICS = {
    "rss_bytes": "RSS",
    "uss_bytes": "USS",
    "pss_bytes": "PSS",
    "vram_bytes": "VRAM",
    "swap_bytes": "swap",
    "tensors": "tensors",
    # What a process has to offer only with the probe in it.
    "probe_readings": "steps, tensors and memory in use",
}
EPOCH = "epoch"
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
    """How a canonical metric is called: `RSS`, `heap_used`, `tensors`. Not made printable."""
    return _METRICS.get(name) or name.removesuffix("_bytes").removesuffix("_percent")


def is_own(name: str) -> bool:
    """The metric is one that memdiag names, not a column of somebody's log."""
    return name in _METRICS


def process(name: str) -> str:
    """How a process is called, empty where the source knows only one. Not made printable."""
    return "all processes" if name == "tree" else name


def one(which: Axis) -> str:
    """A unit of an axis with its article: `a step`, `an epoch`."""
    word = axis(which)
    return f"{'an' if word[0] in 'aeiouAEIOU' else 'a'} {word}"


def axis(which: Axis, number: float = 1) -> str:
    """The word for so many units of an axis: `step`, `steps`, `cycles`."""
    word = _AXIS_WORDS[which.kind]
    if which.kind in _NAMED_KINDS and _WORD.fullmatch(which.name):
        word = which.name
    elif which.kind is AxisKind.REQUEST and "req" not in which.name.lower():
        word = "unit"  # of a column whose name says nothing
    if number == 1:
        return word
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("tch", "sh")) else "s")

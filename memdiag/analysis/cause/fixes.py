"""What usually ends a growth, by what holds it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memdiag.values.findings import Fix, Leaking, PhaseGrowth
from memdiag.values.holders import REGISTERED, RUNNING, UNREACHED, Holder
from memdiag.values.memory_kind import MemoryKind

# Parts of names of attributes of libraries, and what adding to them calls for.
_BY_ATTRIBUTE = (
    ("hooks", Fix.REMOVE_HOOK),
    ("handlers", Fix.REMOVE_HANDLER),
    ("callbacks", Fix.REMOVE_HANDLER),
    ("figs", Fix.CLOSE_FIGURE),
    ("queue", Fix.CONSUME),
    ("param_groups", Fix.NEW_OPTIMIZER),
)
_BY_ROOT = {
    UNREACHED: Fix.BREAK_CYCLE,
    REGISTERED: Fix.REMOVE_HANDLER,
    RUNNING: Fix.END_CALLS,
}
_BY_CONTAINER = {"_lru_cache_wrapper": Fix.CACHE_SIZE, "PjitFunction": Fix.FIXED_SHAPES}
_BY_WAY = {"view": Fix.COPY, "traceback": Fix.NO_TRACEBACK}
_EVALUATES = re.compile(
    r"(?<![a-z])(eval|evaluate|evaluation|val|valid|validate|validation|test|predict)(?![a-z])",
    re.IGNORECASE,
)
UNDECIDED = frozenset({MemoryKind.NATIVE, MemoryKind.NATIVE_OR_TENSORS, MemoryKind.HOLES})
"""What the metrics give for the rest, which they have not seen as anything else."""


def fix_of(holder: Holder, phases: Sequence[PhaseGrowth] = ()) -> Fix:
    """What usually ends the growth of this place. phases: in which memory grows."""
    root = RUNNING if holder.is_thread else holder.path[0].kind
    if (fix := _BY_ROOT.get(root)) is not None:
        return fix
    if holder.bound is not None:
        return Fix.SMALLER_BOUND
    library = [name.name for name in holder.path if name.kind == "attribute" and not name.file]
    for part, fix in _BY_ATTRIBUTE:
        if any(part in name for name in library):
            return fix
    if holder.container in _BY_CONTAINER:
        return _BY_CONTAINER[holder.container]
    if holder.kind is MemoryKind.GRAPH:
        return Fix.NO_GRAD if _is_in_evaluation(holder, phases) else Fix.DETACH
    if holder.through in _BY_WAY:
        return _BY_WAY[holder.through]
    if holder.unit == "items":
        is_sequence = holder.container in ("list", "deque", "tuple", "set")
        return Fix.BOUND_SEQUENCE if is_sequence else Fix.BOUND_DICTIONARY
    return Fix.UNLINK if holder.unit == "objects" else Fix.AGGREGATE


def _is_in_evaluation(holder: Holder, phases: Sequence[PhaseGrowth]) -> bool:
    """Return True if the place grows where a model is only evaluated, by the name of the function
    of its line, or of the phases that are known to make memory grow."""
    names = [line.function.rpartition(".")[2] for line in holder.lines[:1]]
    of_phases = [phase.phase for phase in phases if phase.is_attributed]
    return any(map(_EVALUATES.search, names)) or (
        bool(of_phases) and all(map(_EVALUATES.search, of_phases))
    )


def fix_of_kind(kind: MemoryKind | None) -> Fix | None:
    """What usually ends growth of this kind, whatever holds it; None if that depends on it."""
    return Fix.BREAK_CYCLE if kind is MemoryKind.CYCLES else None


def kind_of(holder: Holder, leaking: Leaking | None) -> MemoryKind:
    """What the growth consists of: by the metrics where they decide, else by what is held."""
    is_known = leaking is not None and leaking.share is not None and leaking.kind not in UNDECIDED
    if leaking is not None and (is_known or leaking.kind is MemoryKind.MAPPED):
        return leaking.kind
    return holder.kind

"""The meaning of a column by its name: an axis, a metric, a tag, or something else.

The words are in `column_vocabulary`; the first rule that fits decides.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from memdiag.recording.parsing.column_names import Name, take_apart
from memdiag.recording.parsing.column_vocabulary import (
    ALLOCATED,
    ALLOCATED_SO_FAR,
    AMOUNTS,
    AVAILABLE,
    AVAILABLE_PARTS,
    AXES,
    AXIS_FILLERS,
    BARE_NUMBERS,
    CAPACITY,
    COUNTS,
    DEVICE,
    FALLING,
    FALLING_FILLERS,
    FALLING_PARTS,
    FREE_FIRST,
    GENERATIONS,
    HOLDERS,
    HOST,
    IN_USE,
    LABEL_FILLERS,
    LABELS,
    LARGEST,
    MEMORY,
    MEMORY_ENDINGS,
    MEMORY_PARTS,
    MEMORY_STEMS,
    NAMES,
    NO_AMOUNTS,
    NO_LEVELS,
    NOT_USED,
    NVIDIA_MEMORY,
    PAIRS,
    PHASE_FILLERS,
    PHASES,
    PID_FILLERS,
    PIDS,
    POOLS,
    SETTINGS,
    TOTAL_OF,
    TOTAL_PARTS,
    TOTALS,
    USE_ENDINGS,
    USED,
    USED_MEMORY,
    USED_PARTS,
    UTILIZATION,
)
from memdiag.values.measurements import AxisKind, Role, Unit


class Part(enum.Enum):
    """The part a column plays in a table."""

    AXIS = "axis"
    METRIC = "metric"
    PHASE = "phase"
    PID = "pid"
    GENERATION = "generation"
    LABEL = "label"  # distinguishes processes, devices or machines
    FILL = "fill"  # how many items something has that holds a limited number
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The meaning of a column's name.

    metric: canonical name of a METRIC, "" otherwise.
    unit: unit of the canonical metric; None if the name does not have one.
    factor: multiply a METRIC's cell by this for `unit`, an AXIS's cell for seconds.
    falling: less of it is more memory in use.
    may_be_free: a word of its name is unknown, and could say that.
    capacity: a total, not an amount in use, if it is constant.
    rank: of several axes the one with the lowest rank is used.
    by_unit: only its unit shows that it may be memory: the size of a file has one too.
    """

    part: Part
    metric: str = ""
    role: Role | None = None
    unit: Unit | None = None
    factor: float = 1.0
    falling: bool = False
    may_be_free: bool = False
    capacity: bool = False
    axis: AxisKind | None = None
    rank: int = 0
    by_unit: bool = False


_OF_FREE = FALLING | FALLING_FILLERS | MEMORY | DEVICE | HOST | LABELS | LABEL_FILLERS
# Words that cannot say that memory is free.
_NOT_FREE = _OF_FREE | CAPACITY | AXIS_FILLERS | POOLS
_NOT_FREE |= {word for _, any_of, and_any_of in AMOUNTS for word in any_of | and_any_of}
_OF_AXES = frozenset(word for _, words in AXES for word in words)
_NOT_FREE |= _OF_AXES
_OF_AMOUNTS = IN_USE.union(*(one | beside for _, one, beside in AMOUNTS))
OTHER = Meaning(part=Part.OTHER)
_PAGE_CACHE = {("mem", "cache"), ("memory", "cache")}


@lru_cache(maxsize=1 << 16)  # of each name of a wide table several readers ask
def recognise(column: str) -> Meaning:
    """The meaning of a column of this name; an unknown name is `Part.OTHER`."""
    name = take_apart(column)
    if not name.words and name.bytes_per_unit is None and not name.percent:
        return _time_unit_alone(name)
    found = _tag(name) or _axis(name) or _metric(name) or OTHER
    field, _, unit = column.partition(" ")
    if field in NVIDIA_MEMORY and (unit or field != USED_MEMORY):
        return replace(found, role=Role.DEVICE)
    return found


def is_setting(column: str) -> bool:
    """Return True for the name of what a program is given, such as `batch size`."""
    return not SETTINGS.isdisjoint(take_apart(column).words[-1:])


def is_available(column: str) -> bool:
    """Return True for what programs may get, which includes what a machine has cached."""
    return _has_word(take_apart(column).words, AVAILABLE, AVAILABLE_PARTS)


def is_bare_number(column: str) -> bool:
    """Return True for the name of an axis that does not say what it counts, such as `index`."""
    words = set(take_apart(column).words)
    return not BARE_NUMBERS.isdisjoint(words) and words <= BARE_NUMBERS | AXIS_FILLERS


def as_metric(
    column: str, unit: Unit | None = None, factor: float = 1.0, *, is_free: bool = False
) -> Meaning:
    """The meaning of a column that the user chose as a metric, in this unit if one is given.

    is_free: the user says that it is free memory.
    """
    name = take_apart(column)
    found = _metric(name)
    role = found.role if found else (_role(name) if unit is not Unit.COUNT else Role.COUNTER)
    if unit is None and found is not None:
        return replace(found, falling=True, may_be_free=False) if is_free else found
    return Meaning(
        part=Part.METRIC,
        metric=_canonical(name, unit),
        role=role,
        unit=unit,
        factor=factor,
        falling=is_free or _is_falling(name.words),
        may_be_free=not is_free and _may_be_free(name.words),
    )


def _time_unit_alone(name: Name) -> Meaning:
    """A column whose whole name is a unit of time, such as `seconds`, `h` or `ms`."""
    if name.seconds_per_unit is None:
        return OTHER
    factor = name.seconds_per_unit
    return Meaning(part=Part.AXIS, axis=AxisKind.SECONDS, factor=factor, rank=_rank("time"))


def _tag(name: Name) -> Meaning | None:
    words = set(name.words)
    if name.bytes_per_unit or name.percent or name.rate:
        return None
    if name.words in PIDS or (name.words[-1:] == ("pid",) and words <= PID_FILLERS | {"pid"}):
        return Meaning(part=Part.PID)
    if name.words in GENERATIONS:
        return Meaning(part=Part.GENERATION)
    if len(words & PHASES) == 1 and words <= PHASES | PHASE_FILLERS:
        return Meaning(part=Part.PHASE)
    if name.words in NAMES or (words & LABELS and words <= LABELS | LABEL_FILLERS):
        return Meaning(part=Part.LABEL)
    return None


def _rank(word: str) -> int:
    return [word for _, words in AXES for word in words].index(word)


def _axis(name: Name) -> Meaning | None:
    if name.bytes_per_unit or name.percent or name.rate or _OF_AXES.isdisjoint(name.words):
        return None
    for kind, words in AXES:
        core = [word for word in words if word in name.words]
        others = set(name.words) - set(core)
        if (
            not core
            or not others <= AXIS_FILLERS
            or (kind is not AxisKind.SECONDS and "time" in others)
        ):
            continue
        if name.seconds_per_unit is not None and kind is not AxisKind.SECONDS:
            continue
        seconds = name.seconds_per_unit or 1.0
        rank = _rank(core[0])
        return Meaning(part=Part.AXIS, axis=kind, factor=seconds, rank=rank)
    return None


def _metric(name: Name) -> Meaning | None:
    words = set(name.words)
    if name.rate or name.seconds_per_unit is not None or _is_no_level(name):
        return None
    if not name.bytes_per_unit and not name.percent:
        for role, nouns in COUNTS:
            if words & nouns:
                metric = "_".join(name.words)
                falling = _is_falling(name.words)
                return Meaning(
                    part=Part.METRIC, metric=metric, role=role, unit=Unit.COUNT, falling=falling
                )
    if not name.bytes_per_unit and not _is_memory(words):
        return None
    unit = Unit.BYTES if name.bytes_per_unit else Unit.PERCENT if name.percent else None
    is_capacity = bool(words & CAPACITY) or _is_total(words)
    return Meaning(
        part=Part.METRIC,
        metric=_canonical(name, unit),
        role=_role(name),
        unit=unit,
        factor=float(name.bytes_per_unit or 1),
        falling=_is_falling(name.words),
        may_be_free=_may_be_free(name.words),
        capacity=is_capacity,
        by_unit=not (is_capacity or _is_memory(words) or _is_amount(words)),
    )


def _is_no_level(name: Name) -> bool:
    """Return True if it is a rate, a load, a sum over the run or the size of one part."""
    words = set(name.words)
    if any(together <= words for together in NO_LEVELS):
        return True
    if words >= ALLOCATED_SO_FAR and words.isdisjoint(LARGEST):
        return True
    if name.words[-1:] == ("allocated",) and not POOLS.isdisjoint(words):
        return True
    if name.words[-1:] == ("total",) and not ALLOCATED.isdisjoint(words):
        return words.isdisjoint(TOTAL_OF | DEVICE)  # a counter of an exporter
    others = words & NO_AMOUNTS
    return bool(others) and not (others <= UTILIZATION and _is_part_in_use(name))


def _is_part_in_use(name: Name) -> bool:
    """Return True for `mem_util_percent` of a machine and `mem.util.used (KiB)`, not for a device's
    `utilization.memory`.
    """
    words = name.words
    used = any(a in MEMORY and b in UTILIZATION for a, b in pairwise(words))
    has_unit = name.percent or name.bytes_per_unit is not None
    return has_unit and used and not DEVICE & set(words)


def _is_falling(words: Sequence[str]) -> bool:
    """Return True for free or available memory, which falls while the memory in use grows.

    Other words after it make it memory that is kept: `free_not_returned`.
    """
    if set(words) >= FREE_FIRST or set(words) >= NOT_USED:
        return True
    named = [at for at, word in enumerate(words) if _has_word((word,), FALLING, FALLING_PARTS)]
    return bool(named) and not _unknown(words[named[0] + 1 :], _OF_FREE)


def _may_be_free(words: Sequence[str]) -> bool:
    """Return True for `memory spare room` and `nicht belegter Speicher`: a word qualifies memory,
    and is not known.
    """
    others = [word for word in words if not _has_word((word,), USED, USED_PARTS)]
    return not _is_falling(words) and _unknown(others, _NOT_FREE)


def _unknown(words: Sequence[str], known: frozenset[str]) -> bool:
    return any(word.isalpha() for word in words if not _is_of_memory(word) and word not in known)


def _has_word(words: Sequence[str], known: frozenset[str], parts: Sequence[str]) -> bool:
    return any(word in known for word in words) or _has_part(words, parts)


def _is_total(words: set[str]) -> bool:
    if words.isdisjoint(TOTALS) and not _has_part(words, TOTAL_PARTS):
        return False
    parts = (*MEMORY_PARTS, *MEMORY_STEMS)
    return words <= TOTALS or bool(words & TOTAL_OF) or _has_part(words, parts)


def _is_memory(words: set[str]) -> bool:
    if "space" in words and words & MEMORY <= FALLING:  # of a disk
        return False
    return any(map(_is_of_memory, words)) or any(pair <= words for _, pair in PAIRS)


def _is_of_memory(word: str) -> bool:
    if word.startswith(MEMORY_STEMS) and word.endswith(USE_ENDINGS):
        return True
    return word.endswith(MEMORY_ENDINGS) or _has_word((word,), MEMORY, MEMORY_PARTS)


def _has_part(words: Iterable[str], parts: Iterable[str]) -> bool:
    return any(part in word for word in words for part in parts)


def _is_amount(words: set[str]) -> bool:
    """Return True if the words say which amount in use it is, or only what has it."""
    return not _OF_AMOUNTS.isdisjoint(words | _devices(words)) or (bool(words) and words <= HOLDERS)


def _devices(words: set[str]) -> set[str]:
    """The kinds of devices that the words begin with: `gpu` of `gpu0`."""
    return {device for device in DEVICE for word in words if word.startswith(device)}


def _role(name: Name) -> Role:
    words = set(name.words)
    words |= _devices(words)
    for role, pair in PAIRS:
        if pair <= words:
            return role
    words = words - FALLING | {"free"} if _is_falling(name.words) else words - FALLING
    if _is_page_cache(name.words) and DEVICE.isdisjoint(words):
        return Role.CACHE
    for role, any_of, and_any_of in AMOUNTS:
        if words & any_of and (not and_any_of or words & and_any_of):
            return role
    return Role.HOST if name.percent and words & {"ram", "used"} else Role.RESIDENT


def _is_page_cache(words: Sequence[str]) -> bool:
    """Return True for `memory cache`, as cAdvisor calls the page cache, not for a cache of a
    program with a name of its own: `mem.cache.rrset`.
    """
    ends = [at for at, two in enumerate(pairwise(words), 2) if two in _PAGE_CACHE]
    return any(USED.issuperset(words[end:]) for end in ends)


def _canonical(name: Name, unit: Unit | None) -> str:
    stem = "_".join(name.words) or "memory"
    if unit is Unit.BYTES:
        return f"{stem}_bytes"
    return f"{stem}_percent" if unit is Unit.PERCENT else stem

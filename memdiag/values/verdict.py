"""Verdicts, their reasons, and the arguments that led to them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Verdict(str, enum.Enum):
    """The verdict on a series, a recording, or all of them; it equals its name: "leak"."""

    STABLE = "stable"
    WARMUP = "warmup"
    LEAK = "leak"
    INCONCLUSIVE = "inconclusive"


STABLE_OR_WARMUP = (Verdict.STABLE, Verdict.WARMUP)
"""Verdicts on memory that does not keep growing."""


class Reason(enum.Enum):
    """The rule that decided the verdict on a series."""

    # stable or warm-up
    FLAT = "flat"  # no growth beyond the noise
    PLATEAU = "plateau"  # grew, then stayed level
    FALLING = "falling"  # memory is released in the last segment
    BOUNDED_CYCLES = "bounded_cycles"  # sawtooth or spikes on a flat floor
    NEGLIGIBLE = "negligible"  # grows, but too slowly to matter over any horizon
    UNSHARED = "unshared"  # copies of pages that processes shared: RSS bounds them
    # leak
    GROWTH_AFTER_PLATEAU = "growth_after_plateau"
    OUTLASTS_WARMUP = "outlasts_warmup"  # steady growth, longer than warm-ups last
    REGULAR_GROWTH = "regular_growth"  # equal increments per step, cycle or phase event
    EXACT_METRIC = "exact_metric"  # an exact metric (bytes in use, tensors) grows
    # inconclusive
    TOO_FEW_SAMPLES = "too_few_samples"
    STILL_CLIMBING = "still_climbing"  # not yet longer than a warm-up may last
    SLOWING = "slowing"  # grows, and slows down
    IRREGULAR = "irregular"  # grows in a way that fits no model
    RECENT_STEP = "recent_step"  # a staircase whose last step is too recent
    RECLAIMED_BEFORE = "reclaimed_before"  # as much growth was released before
    UNCERTAIN_TREND = "uncertain_trend"  # growth is neither confirmed nor ruled out
    AT_LIMIT = "at_limit"  # flat only because a limit is reached
    UNREAD_CELLS = "unread_cells"  # too many cells of the series could not be read
    MAY_BE_FREE = "may_be_free"  # a leak if it is free memory, which its name leaves open
    FEW_PAGES = "few_pages"  # small enough to be first-touch page faults
    FILLING = "filling"  # may be a fixed-size buffer filling up
    NOT_COLLECTED = "not_collected"  # a garbage-collected heap that was rarely collected so far
    NOT_MEMORY = "not_memory"  # address space, page cache: growth is not evidence
    OVERRULED = "overruled"  # a more exact series of the same memory decides differently


class Side(enum.Enum):
    """What an argument supports or opposes."""

    FOR_LEAK = "for_leak"
    AGAINST_LEAK = "against_leak"
    FOR_STABLE = "for_stable"  # STABLE or WARMUP
    AGAINST_STABLE = "against_stable"
    NOT_CONSIDERED = "not_considered"  # a window in which no growth was found
    ACROSS = "across"  # based on another series of the recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of the decision on a series.

    check: name of the check or window that makes it. side: what it supports or opposes.
    text: the sentence; in code, the names of `numbers` stand in it in braces.
    numbers: the values of the sentence; the end of a name is its unit: `_y` the series' unit, `_x`
    that of the axis, `_rate` the one per the other, `_share` a part of 1, `_p` a probability.
    reason: the reason that the series would get if this argument decided.
    verdict: the verdict that it would get. window: the window it is about; "" for the whole series.
    look: what was left out when it was made (an `End`), or "".
    against: the other series that it is about, as "process metric", or "".
    need_x: units of the axis after which the verdict may be known; null if unknown.
    is_decisive: the verdict rests on this argument.
    """

    check: str = ""
    side: Side = Side.NOT_CONSIDERED
    text: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    reason: Reason
    verdict: Verdict = Verdict.INCONCLUSIVE
    window: str = ""
    look: str = ""
    against: str = ""
    need_x: float | None = None
    is_decisive: bool = False

"""Verdicts, their reasons, and the arguments that led to them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Verdict(enum.Enum):
    """What is said of a series, a recording, and all of them."""

    STABLE = "stable"
    WARMUP = "warmup"
    LEAK = "leak"
    INCONCLUSIVE = "inconclusive"


CALM = (Verdict.STABLE, Verdict.WARMUP)
"""Verdicts on what does not go on growing."""


class Reason(enum.Enum):
    """Why a series got its verdict: the rule that decided, for report and JSON."""

    # calm
    FLAT = "flat"  # did not keep growing beyond its own noise
    PLATEAU = "plateau"  # grew, then stayed
    FALLING = "falling"  # the last regime gives memory back
    BOUNDED_CYCLES = "bounded_cycles"  # sawtooth or spikes on a flat floor
    NEGLIGIBLE = "negligible"  # grows, but comes to nothing over any horizon
    # leak
    GROWTH_AFTER_PLATEAU = "growth_after_plateau"
    OUTLASTS_WARMUP = "outlasts_warmup"  # steady growth, longer than warm-ups last
    REGULAR_GROWTH = "regular_growth"  # equal increments per step, cycle or phase event
    EXACT_METER = "exact_meter"  # an exact meter (in-use bytes, tensors) grows
    # not to be told
    TOO_FEW_SAMPLES = "too_few_samples"
    STILL_CLIMBING = "still_climbing"  # no longer than a warm-up may last
    SLOWING = "slowing"  # grows, and slows down
    IRREGULAR = "irregular"  # grows in a way that fits no model
    RECENT_STEP = "recent_step"  # a staircase whose last step is too recent
    RECLAIMED_BEFORE = "reclaimed_before"  # an equal growth was given back before
    UNCERTAIN_TREND = "uncertain_trend"  # growth neither shown nor excluded
    AT_LIMIT = "at_limit"  # flat only because it sits at a limit
    FEW_PAGES = "few_pages"  # no more than memory touched for the first time
    FILLING = "filling"  # no more than a record of fixed length takes until it is full
    NOT_COLLECTED = "not_collected"  # a collected heap that was hardly collected yet
    NOT_A_METER = "not_a_meter"  # address space, page cache: growth of it is no evidence
    OVERRULED = "overruled"  # a more exact series of the same memory decides otherwise


class Side(enum.Enum):
    """What an argument is made for or against."""

    FOR_LEAK = "for_leak"
    AGAINST_LEAK = "against_leak"
    FOR_CALM = "for_calm"  # STABLE or WARMUP
    AGAINST_CALM = "against_calm"
    NOT_CONSIDERED = "not_considered"  # a window in which no growth was proposed
    ACROSS = "across"  # what another series of the recording says


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of the decision on a series, as it was made.

    check, side, window: filled in by the decision: name of the check that made it (or of the kind
    of window), what it argues, and the window it is about, "" for the whole series.
    text: in English, with the names of `numbers` in braces.
    numbers: what the text says; the end of a name is its unit: `_y` that of the series, `_x` that
    of its axis, `_rate` the one per the other, `_share` a part of 1, `_p` a probability, else none.
    against: the other series that it is about, as "process metric", "" for none.
    look: what was left out when it was made (an `End`), "" for nothing.
    reason, verdict: what the series would be, were it the first argument to decide. need_x: axis
    units after which it may be settled, None where unknown. is_decisive: the verdict is this one's.
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

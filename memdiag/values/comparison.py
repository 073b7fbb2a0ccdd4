"""The values of a comparison: what changed between the runs before and the runs after.

A difference is always "candidate minus base"; a ratio "candidate over base". Intervals are 95 %.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from memdiag.values.findings import Failure, Interval
from memdiag.values.measurements import Axis, Role, Unit
from memdiag.values.verdict import Verdict


class Effect(enum.Enum):
    """What the change did."""

    FIXED = "fixed"  # a leak before, none now
    IMPROVED = "improved"  # grows less, or settles lower
    NO_EFFECT = "no_effect"  # equal within noise that would have shown a real change
    WORSE = "worse"  # grows more, or settles higher
    NEW_LEAK = "new_leak"  # none before, a leak now
    CANT_TELL = "cant_tell"  # the runs are too short or too noisy to say


BAD = frozenset({Effect.NEW_LEAK, Effect.WORSE})


class Measure(enum.Enum):
    """What is compared."""

    GROWTH = "growth"  # rate of the last regime, per unit of the axis
    RISE = "rise"  # from the first to the last position that both sides cover
    LEVEL = "level"  # the plateau
    PEAK = "peak"  # the highest reading up to the last common position


class Why(enum.Enum):
    """Which rule decided."""

    LEAK_GONE = "leak_gone"
    LEAK_APPEARED = "leak_appeared"
    RATE_CHANGED = "rate_changed"
    RATE_EQUAL = "rate_equal"
    SLOWER_SO_FAR = "slower_so_far"  # not settled yet, but it rose less over the same steps
    FASTER_SO_FAR = "faster_so_far"
    LEVEL_CHANGED = "level_changed"
    LEVEL_EQUAL = "level_equal"
    PEAK_CHANGED = "peak_changed"  # the plateau is the same, the highest reading is not
    BASE_UNSETTLED = "base_unsettled"
    CANDIDATE_UNSETTLED = "candidate_unsettled"
    BASE_TOO_SHORT = "base_too_short"  # it ends before the other's leak would have shown
    CANDIDATE_TOO_SHORT = "candidate_too_short"
    TOO_NOISY = "too_noisy"  # a change by half would not have shown
    NOT_MEASURED = "not_measured"  # one side's runs have no such figure
    AXES_DIFFER = "axes_differ"  # steps on one side, seconds on the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure on both sides.

    ratio: None where the base's interval holds zero.
    smallest_effect: the smallest change that these runs would have shown in four of five tries.
    """

    measure: Measure
    base: Interval
    candidate: Interval
    change: Interval
    ratio: Interval | None
    smallest_effect: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesComparison:
    """One metric of one process on both sides.

    base_verdicts, candidate_verdicts: one per run. decided_by indexes `differences`.
    common_x: (first, last) position that both sides cover; first > last where they share none.
    need_more_x: how much longer the runs must be, where that is known and would settle it.
    more_runs: runs differ among themselves by more than longer ones would settle.
    trace_base, trace_candidate: thumbnails of one run each, for plots.
    """

    metric: str
    process: str
    role: Role
    unit: Unit
    axis: Axis
    effect: Effect
    why: Why
    base_verdicts: tuple[Verdict, ...]
    candidate_verdicts: tuple[Verdict, ...]
    differences: tuple[Difference, ...]
    decided_by: int | None
    common_x: tuple[float, float]
    need_more_x: float | None
    more_runs: bool
    trace_base: tuple[tuple[float, float], ...]
    trace_candidate: tuple[tuple[float, float], ...]

    @property
    def deciding(self) -> Difference | None:
        """The difference that the effect rests on."""
        return None if self.decided_by is None else self.differences[self.decided_by]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything `memdiag compare` found. `decided_by` indexes `series`."""

    base: tuple[str, ...]
    candidate: tuple[str, ...]
    effect: Effect
    series: tuple[SeriesComparison, ...]
    decided_by: int | None
    notes: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def deciding(self) -> SeriesComparison | None:
        """The series that the effect rests on."""
        return None if self.decided_by is None else self.series[self.decided_by]

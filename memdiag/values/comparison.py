"""The values of a comparison: what changed between the runs before and the runs after.

A difference is always candidate minus base, a ratio candidate over base. Intervals are 95%
intervals.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from memdiag.values.codec import NOT_IN_JSON
from memdiag.values.findings import Failure, Interval
from memdiag.values.measurements import Axis, Role, Unit
from memdiag.values.verdict import Verdict


class Effect(str, enum.Enum):
    """The effect of the change; it equals its name: "fixed"."""

    FIXED = "fixed"  # a leak before, none now
    IMPROVED = "improved"  # grows less, or has a lower plateau
    NO_EFFECT = "no_effect"  # equal within noise small enough to detect a real change
    WORSE = "worse"  # grows more, or has a higher plateau
    NEW_LEAK = "new_leak"  # none before, a leak now
    INCONCLUSIVE = "inconclusive"  # the runs are too short or too noisy


BAD = frozenset({Effect.NEW_LEAK, Effect.WORSE})


class Measure(enum.Enum):
    """What is compared."""

    GROWTH = "growth"  # rate of the last segment, per unit of the axis
    RISE = "rise"  # from the first to the last position that both sides cover
    LEVEL = "level"  # the plateau
    PEAK = "peak"  # the highest reading up to the last common position


class Why(enum.Enum):
    """Which rule decided."""

    LEAK_GONE = "leak_gone"
    LEAK_APPEARED = "leak_appeared"
    RATE_CHANGED = "rate_changed"
    RATE_EQUAL = "rate_equal"
    SLOWER_SO_FAR = "slower_so_far"  # no verdict yet, but it rose less over the same steps
    FASTER_SO_FAR = "faster_so_far"
    LEVEL_CHANGED = "level_changed"
    LEVEL_EQUAL = "level_equal"
    PEAK_CHANGED = "peak_changed"  # the plateau is the same, the peak is not
    BASE_UNSETTLED = "base_unsettled"
    CANDIDATE_UNSETTLED = "candidate_unsettled"
    BASE_TOO_SHORT = "base_too_short"  # it ends before the other's leak would be visible
    CANDIDATE_TOO_SHORT = "candidate_too_short"
    TOO_NOISY = "too_noisy"  # a change by half would not be detected
    NOT_MEASURED = "not_measured"  # one side has no such value
    AXES_DIFFER = "axes_differ"  # steps on one side, seconds on the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One measure on both sides.

    measure: what is compared. base: its value before. candidate: its value after.
    change: candidate minus base.
    ratio: candidate over base; null if the interval of the base contains zero.
    smallest_effect: smallest change that these runs would have detected in four of five tries.
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

    metric: canonical metric name. process: label of the process. role: what the metric measures.
    unit: unit of all values. axis: the horizontal axis. effect: the effect on this series.
    why: the rule that decided. base_verdicts: verdict of each run before.
    candidate_verdicts: verdict of each run after. differences: the measures that could be compared.
    decided_by: index of the difference that the effect rests on, or null.
    common_x: first and last position that both sides cover; first > last if they share none.
    need_more_x: how much longer the runs must be for an answer; null if unknown.
    more_runs: the runs of a side differ by more than longer runs would resolve.
    trace_base, trace_candidate: points of one run each, for plots.
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
    trace_base: tuple[tuple[float, float], ...] = field(metadata=NOT_IN_JSON)
    trace_candidate: tuple[tuple[float, float], ...] = field(metadata=NOT_IN_JSON)

    @property
    def deciding(self) -> Difference | None:
        """The difference that the effect rests on."""
        return None if self.decided_by is None else self.differences[self.decided_by]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that `memdiag compare` found.

    base: the recordings before. candidate: the recordings after. effect: the effect of the change.
    series: a comparison for each series. decided_by: index of the series that the effect rests on.
    notes: what was decided or skipped. failures: sources that could not be analyzed.
    """

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

"""Design matrix of the event regression: the columns that a series may follow, whitened."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from memdiag.analysis.attribution.event_regressors import (
    begun,
    counters,
    creeps,
    hats,
    ramps,
    starts,
)
from memdiag.analysis.attribution.interval_growth import LEAST_MOVES
from memdiag.analysis.stats.ar1_least_squares import WhitenedFit, memory_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats, Ints

    Mask = NDArray[np.bool_]

CYCLES_PER_KNOT = 4  # the slow trend may bend once in this many cycles: heuristic
MOST_KNOTS = 24
SAMPLES_PER_COLUMN = 3  # fewer samples per column than this and nothing is fitted: heuristic
LEAST_NOISE = 1e-4  # of the range of y: keeps the logarithm of a perfect fit finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A phase with everything nested in it; `member`: the samples that were taken there."""

    name: str
    member: Mask


class Kind(enum.Enum):
    """What a column of the design stands for."""

    TREND = enum.auto()  # slow trend, piecewise linear
    LEVEL_ALL = enum.auto()  # a constant
    LEVEL = enum.auto()  # what a phase holds while it lasts
    CREEP = enum.auto()  # how a high-water mark creeps up after an event
    TIME = enum.auto()  # a straight line
    RAMP = enum.auto()  # a sawtooth that rises from event to event
    UNUSED = enum.auto()  # part of the noise estimate alone
    COUNTER = enum.auto()  # events of a phase


class Column(NamedTuple):
    """A column of the design. group: index of its phase, -1 for none. inside: of a counter, that it
    rises within the events, not after them."""

    kind: Kind
    values: Floats
    group: int = -1
    inside: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The whitened design of one series.

    columns: in order; of: indices of those that vary, by kind. starts: of each group, the samples
    by which a further event has begun. is_mark: y never falls, a high-water mark. spans: rise of
    each column from the first to the last sample. least: least noise. rise: of y in all. quantum:
    least move of rounded readings.
    """

    groups: Sequence[Group]
    keep: Mask
    columns: Sequence[Column]
    of: dict[Kind, list[int]]
    starts: Sequence[Ints]
    is_mark: bool
    fit: WhitenedFit
    spans: Floats
    least: float
    rise: float
    quantum: float

    @classmethod
    def build(cls, x: Floats, y: Floats, keep: Mask, groups: Sequence[Group]) -> Design | None:
        """None where the series is too short for the model."""
        cycles = min((len(starts(group.member)) for group in groups), default=0)
        knots = int(min(max(cycles // CYCLES_PER_KNOT, 1), MOST_KNOTS)) + 1
        if cycles < 3 or keep.sum() < SAMPLES_PER_COLUMN * (knots + 3 * len(groups)):
            return None
        is_mark = bool((np.diff(y) >= 0).all())
        columns = list(_columns(x, groups, knots, is_mark=is_mark))
        matrix = np.column_stack([column.values for column in columns])[keep]
        varies = np.ptp(matrix, axis=0) > 0
        centred = y[keep] - y[keep].mean()
        level = isotonic_regression(centred).x
        return cls(
            groups=groups,
            keep=keep,
            columns=columns,
            of={
                kind: [
                    i
                    for i, column in enumerate(columns)
                    if column.kind is kind and (varies[i] or kind in (Kind.TREND, Kind.LEVEL_ALL))
                ]
                for kind in Kind
            },
            starts=[begun(group.member, keep) for group in groups],
            is_mark=is_mark,
            fit=WhitenedFit(matrix, centred, memory_of(matrix, centred)),
            spans=matrix[-1] - matrix[0],
            least=LEAST_NOISE * float(np.ptp(centred)),
            rise=float(level[-1] - level[0]),
            quantum=_quantum(y),
        )

    def counters(self, groups: set[int]) -> list[int]:
        """The counters of these groups."""
        return [i for i in self.of[Kind.COUNTER] if self.columns[i].group in groups]

    def samples_in(self, group: int) -> int:
        """Samples taken in a phase."""
        return int(self.groups[group].member.sum())

    def is_long(self, group: int) -> bool:
        """Return True if the phase fills most of the time: only the fit separates it from the
        trend."""
        return self.samples_in(group) > 0.5 * len(self.keep)

    def unseen(self, group: int) -> float:
        """Part of a phase's samples that is left out, 0..1."""
        return float((~self.keep[self.groups[group].member]).mean())


def _columns(x: Floats, groups: Sequence[Group], knots: int, *, is_mark: bool) -> Iterator[Column]:
    yield from (Column(Kind.TREND, hat) for hat in hats(x, knots).T)
    yield Column(Kind.LEVEL_ALL, np.ones(len(x)))
    for g, group in enumerate(groups):
        if is_mark:
            yield from (Column(Kind.CREEP, creep, g) for creep in creeps(group.member))
        else:
            yield Column(Kind.LEVEL, group.member.astype(np.float64), g)
    yield Column(Kind.TIME, np.arange(len(x), dtype=np.float64))
    kind = Kind.UNUSED if is_mark else Kind.RAMP
    for g, group in enumerate(groups):
        yield from (Column(kind, ramp, g) for ramp in ramps(group.member))
    for g, group in enumerate(groups):
        yield from (Column(Kind.COUNTER, c, g, inside) for inside, c in counters(x, group.member))


def _quantum(y: Floats) -> float:
    """The least move of rounded readings; 0 where they rarely stand still."""
    moves = np.abs(np.diff(y))
    rounded = len(moves) > 0 and (moves > 0).any() and (moves == 0).mean() > 1 - LEAST_MOVES
    return float(moves[moves > 0].min()) if rounded else 0.0

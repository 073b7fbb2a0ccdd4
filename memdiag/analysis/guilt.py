"""Which phases does growth keep step with, when noise hides the single event?

The series is modelled as

    y = slow trend + sum_p amount_p * counter_p + AR(1) noise

where counter_p rises by one per event of phase p: when it begins, when it ends, or in proportion to
the time spent in it. Everything is whitened by the AR(1) coefficient, so the same fit is a fit of
levels for white noise and a fit of increments for a random walk. Which phase and which counter is
chosen by the Bayesian information criterion (Schwarz 1978), phase after phase, as long as chance
does not explain the gain (`chance.rotated`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.chance import Cycles, rotated
from memdiag.findings import BLAME_P_VALUE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.model import Floats, Ints

    Mask = NDArray[np.bool_]

CYCLES_PER_KNOT = 4  # the slow trend may bend once in so many cycles: chosen
MOST_KNOTS = 24
SAMPLES_PER_COLUMN = 3  # fewer samples per column than this and nothing is fitted: chosen
COUNTERS = 4  # per phase: begun, half over, ended, time spent
LEAST_NOISE = 1e-4  # of the range of y: keeps the logarithm of a perfect fit finite
TIE = 2.0  # BIC differences below this are worth no more than a bare mention (Kass & Raftery 1995)
MOST_OF_RISE = 1.2  # growth charged to phases over the rise of the trend alone: chosen
MOST_GUILTY = 4  # more phases with a quarter of the growth each there cannot be


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A phase with everything nested in it; `member` says of each sample if it was taken there."""

    name: str
    member: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Guilt:
    """A phase that growth keeps step with.

    per_event, error: growth per event and its standard error, in y's unit; share: of all growth.
    p_value: chance of a fit as good if growth knew nothing of the tags. noise: of one reading.
    """

    name: str
    per_event: float
    error: float
    share: float
    p_value: float
    noise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counter:
    group: int
    column: int


class _Fit:
    """Least squares on subsets of whitened columns, from one Gram matrix."""

    def __init__(self, columns: Floats, target: Floats, memory: float) -> None:
        self.columns = _whiten(columns, memory)
        self.target = _whiten(target[:, None], memory)[:, 0]
        self.scale = np.maximum(np.linalg.norm(self.columns, axis=0), 1e-300)
        self.columns /= self.scale
        self.gram = self.columns.T @ self.columns
        self.moment = self.columns.T @ self.target
        self.power = float(self.target @ self.target)

    def weights(self, chosen: Sequence[int]) -> Floats:
        """Coefficients of the chosen (normalised) columns."""
        index = np.asarray(chosen)
        return np.asarray(
            np.linalg.lstsq(self.gram[np.ix_(index, index)], self.moment[index], rcond=1e-10)[0]
        )

    def residual(self, chosen: Sequence[int]) -> Floats:
        return self.target - self.columns[:, list(chosen)] @ self.weights(chosen)

    def rss(self, chosen: Sequence[int]) -> float:
        index = np.asarray(chosen)
        return max(self.power - float(self.moment[index] @ self.weights(chosen)), 0.0)

    def apart(self, column: int, chosen: Sequence[int]) -> Floats:
        """The part of a column that the chosen ones do not span, shape (n,)."""
        index = np.asarray(chosen)
        part = np.linalg.lstsq(
            self.gram[np.ix_(index, index)], self.gram[index, column], rcond=1e-10
        )[0]
        return np.asarray(self.columns[:, column] - self.columns[:, index] @ part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guilty:
    """The phases found, and what chance says of the others once those are allowed for."""

    found: tuple[Guilt, ...]
    others: dict[str, float]


def guilty(
    x: Floats, y: Floats, telling: Mask, groups: Sequence[Group], *, seed: int
) -> Guilty | None:
    """Phases that growth keeps step with, the strongest first.

    x, y: samples of the tagged stretch without what phases hold in passing, shape (n,); telling:
    which of them say something. None where the series is too short for
    the model; then only the charging of single events speaks.
    """
    model = _Model.of(x, y, telling, groups)
    if model is None:
        return None
    found: list[_Counter] = []
    p_values: list[float] = []
    while len(found) < min(MOST_GUILTY, len(groups)):
        counter = model.best(found)
        if counter is None:
            break
        p_value = min(1.0, model.chance(counter.group, found, seed) * len(groups))
        if p_value > BLAME_P_VALUE:
            break
        found = [*found, counter]
        p_values.append(p_value)
    named = {counter.group for counter in found}
    others = {
        group.name: min(1.0, model.chance(g, found, seed) * len(groups))
        for g, group in enumerate(groups)
        if g not in named
    }
    return Guilty(found=tuple(model.describe(found, p_values)), others=others)


class _Model:
    """The columns of one series and what can be asked of them."""

    def __init__(
        self, fit: _Fit, knots: int, groups: Sequence[Group], columns: Floats, least: float
    ) -> None:
        self.fit, self.groups, self.least = fit, groups, least
        self.trend = list(range(knots))
        self.counters = [
            _Counter(group=i // COUNTERS, column=knots + i) for i in range(COUNTERS * len(groups))
        ]
        self.spans = columns[-1] - columns[0]
        trend = fit.weights(self.trend) / fit.scale[self.trend]
        self.rise = float(trend[-1] - trend[0])
        self.levels = list(range(knots + COUNTERS * len(groups), columns.shape[1]))
        self.starts = [
            1 + np.flatnonzero(np.diff(columns[:, knots + COUNTERS * g]) > 0)
            for g in range(len(groups))
        ]

    @classmethod
    def of(cls, x: Floats, y: Floats, keep: Mask, groups: Sequence[Group]) -> _Model | None:
        cycles = min((len(_starts(group.member)) for group in groups), default=0)
        knots = int(min(max(cycles // CYCLES_PER_KNOT, 1), MOST_KNOTS)) + 1
        keep = keep & _spaced(x)
        if cycles < 3 or keep.sum() < SAMPLES_PER_COLUMN * (knots + COUNTERS * len(groups)):
            return None
        counters = [column for group in groups for column in _counters(x, group.member)]
        levels = [group.member.astype(np.float64) for group in groups]
        columns = np.column_stack([_hats(x, knots), *counters, *levels])[keep]
        centred = y[keep] - y[keep].mean()
        fit = _Fit(columns, centred, _memory(columns, centred))
        return cls(fit, knots, groups, columns, LEAST_NOISE * float(np.ptp(centred)))

    def best(self, found: Sequence[_Counter]) -> _Counter | None:
        """The counter that the criterion likes best, if it likes any more than none."""
        taken = {counter.group for counter in found}
        base = [*self.trend, *(counter.column for counter in found)]
        liked = [
            (self._criterion([*base, counter.column]), counter)
            for counter in self.counters
            if counter.group not in taken and self._grow(base, counter)
        ]
        least = min((score for score, _ in liked), default=math.inf)
        if least >= self._criterion(base):
            return None
        near = [entry for entry in liked if entry[0] <= least + TIE]
        return min(near, key=lambda entry: (self._length(entry[1]), entry[0]))[1]

    def _length(self, counter: _Counter) -> int:
        """Samples in the phase: of phases that explain alike, the most specific is named."""
        return int(self.groups[counter.group].member.sum())

    def _grow(self, base: Sequence[int], counter: _Counter) -> bool:
        """All amounts are growth, and together no more than there was (time spent in a long phase
        is nearly the trend itself: what one gains the other loses, without a bound)."""
        columns = [*base[len(self.trend) :], counter.column]
        amounts = self.fit.weights([*base, counter.column])[len(self.trend) :]
        grown = amounts / self.fit.scale[columns] * self.spans[columns]
        return bool((amounts > 0).all()) and float(grown.sum()) <= MOST_OF_RISE * self.rise

    def _criterion(self, chosen: Sequence[int]) -> float:
        n = len(self.fit.target)
        variance = self.fit.rss(chosen) / n + self.least**2
        return n * math.log(max(variance, 1e-300)) + len(chosen) * math.log(n)

    def chance(self, group: int, found: Sequence[_Counter], seed: int) -> float:
        """Chance of the best of the group's counters, given what was found before.

        A level that the phases hold in passing is allowed for, so that rising into a phase counts
        for nothing without staying up behind it.
        """
        base = [*self.trend, *self.levels, *(counter.column for counter in found)]
        own = [c.column for c in self.counters if c.group == group]
        apart = [self.fit.apart(column, base) for column in own]
        kernels = [a / max(float(np.linalg.norm(a)), 1e-12) for a in apart]
        cycles = Cycles.at(self.starts[group], len(self.fit.target))
        return rotated(self.fit.residual(base), kernels, cycles, seed=seed)

    def describe(self, found: Sequence[_Counter], p_values: Sequence[float]) -> Iterator[Guilt]:
        """Amounts of one joint fit."""
        if not found:
            return
        columns, knots = [counter.column for counter in found], len(self.trend)
        chosen = [*self.trend, *columns]
        weights = self.fit.weights(chosen) / self.fit.scale[chosen]
        freedom = max(len(self.fit.target) - len(chosen), 1)
        variance = self.fit.rss(chosen) / freedom + self.least**2
        covariance = np.linalg.pinv(self.fit.gram[np.ix_(chosen, chosen)], rcond=1e-10) * variance
        grown = self.spans[columns] * weights[knots:]
        total = float(grown.sum()) + max(float(weights[knots - 1] - weights[0]), 0.0)
        for i, counter in enumerate(found):
            per_event = float(self.spans[counter.column]) / max(len(self.starts[counter.group]), 1)
            error = math.sqrt(float(covariance[knots + i, knots + i]))
            yield Guilt(
                name=self.groups[counter.group].name,
                per_event=float(weights[knots + i]) * per_event,
                error=error / float(self.fit.scale[counter.column]) * per_event,
                share=float(grown[i]) / total if total > 0 else 0.0,
                p_value=p_values[i],
                noise=math.sqrt(variance),
            )


def _starts(member: Mask) -> Ints:
    return np.flatnonzero(member & ~np.r_[False, member[:-1]])


def _counters(x: Floats, member: Mask) -> Iterator[Floats]:
    """Events begun, half over, ended, and time spent in them (in mean events), shape (n,) each."""
    before = np.r_[False, member[:-1]]
    begun, ended = np.cumsum(member & ~before), np.cumsum(~member & before)
    yield begun.astype(np.float64)
    starts, ends = _starts(member), _starts(~member)
    ends = ends[ends > starts[0]] if len(starts) else ends
    halves = np.zeros(len(member))
    halves[(starts[: len(ends)] + ends[: len(starts)] + 1) // 2] = 1.0
    yield np.cumsum(halves)
    yield ended.astype(np.float64)
    width = np.diff(x, prepend=x[0])
    spent = np.cumsum(width * (member.astype(np.float64) + before) / 2)
    yield spent / max(float(spent[-1]), 1e-300) * max(len(_starts(member)), 1)


def _hats(x: Floats, knots: int) -> Floats:
    """Piecewise linear basis over the axis; it sums to 1, shape (n, knots)."""
    at = (x - x[0]) / max(float(x[-1] - x[0]), 1e-300) * (knots - 1)
    hats: Floats = np.maximum(0.0, 1.0 - np.abs(at[:, None] - np.arange(knots)[None, :]))
    return hats


def _spaced(x: Floats) -> Mask:
    """One sample per typical distance: readings in quick succession repeat each other's noise."""
    width = np.diff(x)
    typical = float(np.median(width[width > 0])) if (width > 0).any() else 1.0
    tick = np.floor((x - x[0]) / typical + 0.5)
    spaced: Mask = np.r_[True, np.diff(tick) > 0]
    return spaced


def _whiten(columns: Floats, memory: float) -> Floats:
    """Prais & Winsten 1954."""
    white = np.array(columns, dtype=np.float64)
    white[1:] -= memory * columns[:-1]
    white[0] *= math.sqrt(1 - memory * memory)
    return white


def _memory(columns: Floats, target: Floats) -> float:
    """AR(1) coefficient of what all columns together leave over, below 1."""
    rest = target - columns @ np.linalg.lstsq(columns, target, rcond=1e-10)[0]
    power = float(rest[:-1] @ rest[:-1])
    raw = float(rest[1:] @ rest[:-1]) / power if power > 0 else 0.0
    return min(max(raw + (1 + 3 * raw) / len(rest), 0.0), 0.995)

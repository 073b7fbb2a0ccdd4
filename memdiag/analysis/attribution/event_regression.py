"""Which phases does growth keep step with, when noise hides the single event?

The series is modelled as

    y = slow trend + sum_q level_q * [in q] + sum_p amount_p * counter_p + AR(1) noise

where level_q is what phase q holds in passing (a sawtooth that rises from event to event and is
given back is allowed for as well) and counter_p rises by one per event of phase p: when
it begins, when it ends, or in proportion to the time spent in it. A high-water mark holds nothing
in passing; there level_q weighs how a mark creeps up after each event (the expected maximum of d
normal readings goes with sqrt(2 log d)). Everything is whitened by the AR(1) coefficient, so the
same fit is a fit of levels for white noise and a fit of increments for a random walk. Levels, phase
and counter are chosen by the Bayesian information criterion (Schwarz 1978), phase after phase, as
long as it gains by a margin and chance does not explain the gain (`chance.rotated`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

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
from memdiag.analysis.attribution.interval_growth import STILL
from memdiag.analysis.stats.ar1_least_squares import WhitenedFit, memory_of
from memdiag.analysis.stats.rotation_test import Cycles, rotated
from memdiag.values.findings import ATTRIBUTION_P_VALUE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats

    Mask = NDArray[np.bool_]

CYCLES_PER_KNOT = 4  # the slow trend may bend once in so many cycles: chosen
MOST_KNOTS = 24
SAMPLES_PER_COLUMN = 3  # fewer samples per column than this and nothing is fitted: chosen
LEAST_NOISE = 1e-4  # of the range of y: keeps the logarithm of a perfect fit finite
# Least gain of the criterion: very strong evidence (Kass & Raftery 1995); twice that for a phase
# that fills most of the time: 5 of 13 that were wrongly blamed in 900 runs, 1 of 760 guilty ones.
MARGIN = 10.0
MOST_PICKED = 12  # columns beside the trend in one model
TIE = 2.0  # BIC differences below this are worth no more than a bare mention (Kass & Raftery 1995)
LONGER = 3  # a phase so many times longer is less specific: chosen
MOST_UNSEEN = 0.5  # a phase with more of its samples left out was not seen: chosen
MOST_OF_RISE = 1.5  # growth charged to phases over the rise in all: chosen
MOST_OF_SEVERAL = 1.1  # ... to several of them: what a further one gains, no falling trend pays
NORMAL_95 = 1.96
# The memory of the noise is estimated and the model was picked, which the fit's own interval does
# not know: wider by so much, and by an event that the ends cut, 95 % hold the truth
# (benchmarks/phases.py).
WIDER = 2.0
MOST_SAMPLES = 20_000  # of more, the latest are fitted
MOST_GUILTY = 4  # more phases with a quarter of the growth each there cannot be


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A phase with everything nested in it; `member` says of each sample if it was taken there."""

    name: str
    member: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Guilt:
    """A phase that growth keeps step with.

    per_event, half_width: growth per event and half its 95 % interval, in y's unit; share: of all
    growth. p_value: chance of a fit as good if growth knew nothing of the tags.
    """

    name: str
    per_event: float
    half_width: float
    share: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counter:
    """A counter of a group; `inside`: it rises within the events, not after them."""

    group: int
    column: int
    inside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A model that was tried: counters of one group, levels, and its criterion."""

    score: float
    group: int
    columns: tuple[int, ...]
    levels: tuple[int, ...]
    inside: bool
    trend: tuple[int, ...]
    gain: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guilty:
    """The phases found, and what chance says of the others once those are allowed for."""

    found: tuple[Guilt, ...]
    others: dict[str, float]


def guilty(
    x: Floats, y: Floats, telling: Mask, groups: Sequence[Group], *, tests: int, seed: int
) -> Guilty | None:
    """Phases that growth keeps step with, the strongest first.

    x, y: samples of the tagged stretch, shape (n,); telling: which of them say something; tests:
    phases that there are in all, each of which might have been blamed by chance. None where the
    series is too short for the model; then only the charging of single events speaks.
    """
    if len(x) > MOST_SAMPLES:
        x, y, telling = x[-MOST_SAMPLES:], y[-MOST_SAMPLES:], telling[-MOST_SAMPLES:]
        groups = [Group(name=g.name, member=g.member[-MOST_SAMPLES:]) for g in groups]
    model = _Model.of(x, y, telling, groups)
    if model is None:
        return None
    found: list[_Choice] = []
    p_values: list[float] = []
    while len(found) < min(MOST_GUILTY, len(groups)):
        tried = (
            (choice, min(1.0, model.chance_of(choice, found, seed) * tests))
            for choice in model.liked(found)
        )
        choice, p_value = next((t for t in tried if t[1] <= ATTRIBUTION_P_VALUE), (None, 1.0))
        if choice is None:
            break
        found.append(choice)
        p_values.append(p_value)
    named = {choice.group for choice in found}
    others = {
        group.name: 1.0
        if model.is_long(g)
        else min(1.0, model.chance(g, found, seed, model.beside) * tests)
        for g, group in enumerate(groups)
        if g not in named
    }
    return Guilty(found=tuple(model.describe(found, p_values)), others=others)


class _Model:
    """The columns of one series and what can be asked of them."""

    def __init__(self, x: Floats, y: Floats, keep: Mask, groups: Sequence[Group], knots: int):
        self.groups, self.lengths = groups, [int(group.member.sum()) for group in groups]
        self.samples = len(x)
        self.starts = [begun(group.member, keep) for group in groups]
        mark = self.mark = bool((np.diff(y) >= 0).all())
        levels = (
            [c for g in groups for c in creeps(g.member)]
            if mark
            else [g.member.astype(np.float64) for g in groups]
        )
        rising = [(g, *c) for g, group in enumerate(groups) for c in counters(x, group.member)]
        still = np.ones(len(x))
        given = [ramp for group in groups for ramp in ramps(group.member)]
        parts = [hats(x, knots), still, *levels, np.arange(len(x)), *given]
        parts += [c[2] for c in rising]
        columns = np.column_stack(parts)[keep]
        self.trend, self.still = list(range(knots)), [knots]
        index = knots + 1 + len(levels)
        first = index + 1 + len(given)
        beside = [i for i in range(knots + 1, first) if np.ptp(columns[:, i]) > 0]
        self.ramps = [i for i in beside if i > index and not mark]
        self.levels = [i for i in beside if i <= index and (i == index or not mark)]
        self.passing = {*range(knots + 1, index), *self.ramps}
        self.unseen = [float((~keep[group.member]).mean()) for group in groups]
        self.beside: tuple[int, ...] = ()  # what is given back, if no further phase is guilty
        self.creeps = [i for i in beside if i < index and mark]
        self.counters = [
            _Counter(group=g, column=first + i, inside=inside)
            for i, (g, inside, _) in enumerate(rising)
            if np.ptp(columns[:, first + i]) > 0
        ]
        centred = y[keep] - y[keep].mean()
        self.spans = columns[-1] - columns[0]
        self.least = LEAST_NOISE * float(np.ptp(centred))
        self.fit = WhitenedFit(columns, centred, memory_of(columns, centred))
        level = isotonic_regression(centred).x
        self.rise = float(level[-1] - level[0])
        self.quantum = _quantum(y)

    @classmethod
    def of(cls, x: Floats, y: Floats, keep: Mask, groups: Sequence[Group]) -> _Model | None:
        cycles = min((len(starts(group.member)) for group in groups), default=0)
        knots = int(min(max(cycles // CYCLES_PER_KNOT, 1), MOST_KNOTS)) + 1
        if cycles < 3 or keep.sum() < SAMPLES_PER_COLUMN * (knots + 3 * len(groups)):
            return None
        return cls(x, y, keep, groups, knots)

    def liked(self, found: Sequence[_Choice]) -> list[_Choice]:
        """One model for each group that the criterion likes by a margin, the likeliest first."""
        taken = {choice.group for choice in found}
        own = [column for choice in found for column in choice.columns]
        open_ = [g for g in range(len(self.groups)) if g not in taken]
        trends = (self.trend, self.still)
        none = min((self._grown(found, own, None, t) for t in trends), key=lambda c: c.score)
        plain = none.score
        without = [c for c in (*none.trend, *none.levels, *own) if c not in self.ramps]
        worse = self._criterion(self.fit.rss(without), len(without))
        self.beside = none.levels if worse - plain >= MARGIN else ()
        best: dict[int, _Choice] = {}
        for choice in (self._grown(found, own, g, trend) for g in open_ for trend in trends):
            gain = plain - choice.score
            known = best.get(choice.group)
            better = gain >= (self._margin(choice.group) if known is None else known.gain)
            if choice.columns and better and self._grow(found, choice):
                best[choice.group] = replace(choice, gain=gain)
        most = max((choice.gain for choice in best.values()), default=0.0)
        near = [c for c in best.values() if c.gain >= most - TIE]
        first = min(near, key=self._unlikely, default=None)
        return sorted(best.values(), key=lambda c: (c is not first, -c.gain))

    def is_long(self, group: int) -> bool:
        """The phase fills most of the time: only the fit can tell it from the trend."""
        return self.lengths[group] > 0.5 * self.samples

    def _margin(self, group: int) -> float:
        """Least gain of the criterion."""
        return MARGIN * (1 + self.is_long(group))

    def _grown(
        self, found: Sequence[_Choice], own: Sequence[int], group: int | None, trend: Sequence[int]
    ) -> _Choice:
        """Forward choice among levels and one group's counters (and more of those found)."""
        taken = {choice.group for choice in found} | ({group} if group is not None else set())
        known = {c.column: c for c in self.counters if c.group in taken}
        crept = [c for c in self.creeps if (c - self.still[0] - 1) // 2 == group]
        open_ = [*self.levels, *self.ramps, *crept, *known]
        chosen = [*trend, *own]
        rising = {*own, *known}
        score = self._criterion(self.fit.rss(chosen), len(chosen))
        picked: list[int] = []
        while open_ and len(picked) < MOST_PICKED:
            taken_up = self._next(chosen, open_, rising, score)
            if taken_up is None:
                break
            column, score = taken_up
            chosen = [*chosen, column]
            open_.remove(column)
            picked.append(column)
        columns = tuple(c for c in picked if c in known and known[c].group == group)
        first = known[columns[0]].inside if columns else True
        return _Choice(
            score=score,
            group=-1 if group is None else group,
            columns=columns,
            levels=tuple(c for c in picked if c not in columns),
            inside=first,
            trend=tuple(trend),
        )

    def _next(
        self, chosen: Sequence[int], open_: Sequence[int], rising: set[int], score: float
    ) -> tuple[int, float] | None:
        """The column that adds most and leaves the model possible, with the new criterion."""
        signed = np.array([column in rising or column in self.ramps for column in open_])
        gains = self.fit.gains(chosen, open_)
        gains = np.where(signed, gains, np.abs(gains))
        for at in np.argsort(-gains):
            further = [*chosen, open_[at]]
            now = self._criterion(self.fit.rss(further), len(further))
            if gains[at] <= 0 or now >= score:
                return None
            if self._possible(further, rising):
                return open_[at], now
        return None

    def _possible(self, chosen: Sequence[int], rising: set[int]) -> bool:
        """Nothing that rises falls, and what is kept is no more than there was (time spent in a
        long phase is nearly the trend itself: what one gains the other loses, without a bound)."""
        weights = self.fit.weights(chosen) / self.fit.scale[np.asarray(chosen)]
        signed = [i for i, column in enumerate(chosen) if column in rising or column in self.ramps]
        if signed and min(weights[i] for i in signed) < 0:
            return False
        grown = sum(weights[i] * self.spans[c] for i, c in enumerate(chosen) if c in rising)
        return bool(grown <= MOST_OF_RISE * self.rise)

    def _unlikely(self, choice: _Choice) -> tuple[bool, float, bool]:
        """Of phases that explain alike, one that nothing was seen of is named: growth before and
        after it is as likely to fall into the gap. Then the most specific; where that does not
        differ much, the one whose own samples show the growth."""
        length = self.lengths[choice.group]
        seen = self.unseen[choice.group] < MOST_UNSEEN
        return seen, length * (1 if choice.inside else LONGER), not choice.inside

    def _grow(self, found: Sequence[_Choice], choice: _Choice) -> bool:
        """Each amount is growth, and together no more than there was (time spent in a long phase
        is nearly the trend itself: what one gains the other loses, without a bound)."""
        groups = [*found, choice]
        own = [column for group in groups for column in group.columns]
        weights = dict(zip(own, self._amounts(own, choice), strict=True))
        grown = [sum(weights[c] * self.spans[c] for c in group.columns) for group in groups]
        most = MOST_OF_SEVERAL if found else MOST_OF_RISE
        return bool(min(grown) > 0 and sum(grown) <= most * self.rise)

    def _amounts(self, own: Sequence[int], choice: _Choice) -> Floats:
        base = [*choice.trend, *choice.levels]
        chosen = [*base, *own]
        return np.asarray((self.fit.weights(chosen) / self.fit.scale[chosen])[len(base) :])

    def _criterion(self, rss: float, columns: int) -> float:
        n = len(self.fit.target)
        variance = max(rss, 0.0) / n + self.least**2
        return n * math.log(max(variance, 1e-300)) + columns * math.log(n)

    def chance(
        self, group: int, found: Sequence[_Choice], seed: int, beside: Sequence[int] = ()
    ) -> float:
        """Chance of the best of the group's counters, given what was found before.

        A level that the phases hold in passing is allowed for, so that rising into a phase counts
        for nothing without staying up behind it.
        """
        base = [*self.trend, *self.levels, *(c for c in beside if c in self.ramps)]
        base += [c for choice in found for c in choice.columns]
        own = [c.column for c in self.counters if c.group == group]
        if not own:
            return 1.0
        kernels = [a / max(float(np.linalg.norm(a)), 1e-12) for a in self.fit.apart(own, base)]
        cycles = Cycles.at(self.starts[group], len(self.fit.target))
        return rotated(self.fit.residual(base), kernels, cycles, seed=seed)

    def chance_of(self, choice: _Choice, found: Sequence[_Choice], seed: int) -> float:
        """Chance of a model that was tried, with what it takes to be given back and without: what
        only one of the two readings tells is told by neither."""
        own = self.chance(choice.group, found, seed, choice.levels)
        differ = ({*choice.levels} ^ {*self.beside}) & {*self.ramps}
        if not differ or own > ATTRIBUTION_P_VALUE:
            return own
        return max(own, self.chance(choice.group, found, seed, self.beside))

    def describe(self, found: Sequence[_Choice], p_values: Sequence[float]) -> Iterator[Guilt]:
        """Amounts of one joint fit."""
        if not found:
            return
        own = list(dict.fromkeys(column for choice in found for column in choice.columns))
        levels = [level for level in found[-1].levels if level not in own]
        chosen = [*found[-1].trend, *own, *levels]
        weights = self.fit.weights(chosen) / self.fit.scale[chosen]
        freedom = max(len(self.fit.target) - len(chosen), 1)
        variance = self.fit.rss(chosen) / freedom + self.least**2
        covariance = np.linalg.pinv(self.fit.gram[np.ix_(chosen, chosen)], rcond=1e-10) * variance
        grown = self.spans[chosen] * weights
        of = {counter.column: counter.group for counter in self.counters}
        at = [
            [i for i, column in enumerate(chosen) if of.get(column) == choice.group]
            for choice in found
        ]
        kept = [i for i, c in enumerate(chosen) if c not in self.passing]
        total = sum(float(grown[i].sum()) for i in at) if self.mark else float(grown[kept].sum())
        # What a mark adds late and bit by bit goes with the events that it began at.
        whole = self.rise / total if self.mark and total > 0 else 1.0
        for choice, own_at, p_value in zip(found, at, p_values, strict=True):
            # Each counter rises by one per event, so that an event keeps the sum of the weights.
            part = 1.0 / self.fit.scale[[chosen[i] for i in own_at]]
            error = math.sqrt(max(float(part @ covariance[np.ix_(own_at, own_at)] @ part), 0.0))
            events = max(len(self.starts[choice.group]), 1)
            value = float(grown[own_at].sum())
            half = NORMAL_95 * math.hypot(error, self.quantum / math.sqrt(6) / events)
            per_event = float(weights[own_at].sum()) * whole
            yield Guilt(
                name=self.groups[choice.group].name,
                per_event=per_event,
                half_width=math.hypot(WIDER * half * max(whole, 1.0), per_event / events),
                share=value / total if total > 0 else 0.0,
                p_value=p_value,
            )


def _quantum(y: Floats) -> float:
    """The least move of rounded readings; 0 where they hardly ever stand still."""
    moves = np.abs(np.diff(y))
    rounded = len(moves) > 0 and (moves > 0).any() and (moves == 0).mean() > 1 - STILL
    return float(moves[moves > 0].min()) if rounded else 0.0

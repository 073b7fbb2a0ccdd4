"""Regress growth on phase events, where noise hides the single event.

The series is modelled as

    y = slow trend + sum_q level_q * [in q] + sum_p amount_p * counter_p + AR(1) noise

where level_q is what phase q holds while it lasts (a sawtooth that rises from event to event and is
released is allowed for as well) and counter_p rises by one per event of phase p: when it begins,
when it ends, or in proportion to the time spent in it. A high-water mark holds nothing temporarily;
there level_q weighs how a mark creeps up after each event (the expected maximum of d normal
readings grows with sqrt(2 log d)). Everything is whitened by the AR(1) coefficient, so the same fit
is a fit of levels for white noise and a fit of increments for a random walk. Levels, phase and
counter are chosen by the Bayesian information criterion (Schwarz 1978), phase after phase, as long
as a phase gains by a margin and chance does not explain the gain (`rotation_test.rotated`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.attribution.event_design import Design, Group, Kind
from memdiag.analysis.stats.rotation_test import cycles_at, rotated
from memdiag.values.findings import ATTRIBUTION_P_VALUE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats

    Mask = NDArray[np.bool_]

# Least gain of the criterion: very strong evidence (Kass & Raftery 1995); twice that for a phase
# that fills most of the time: 5 of 13 that were wrongly blamed in 900 runs, 1 of 760 true ones.
MARGIN = 10.0
MOST_PICKED = 12  # columns beside the trend in one model
TIE = 2.0  # BIC differences below this are worth no more than a bare mention (Kass & Raftery 1995)
LONGER = 3  # a phase this many times longer is less specific: heuristic
MOST_UNSEEN = 0.5  # a phase with more of its samples left out was not seen: heuristic
MOST_OF_RISE = 1.5  # growth attributed to phases over the rise in all: heuristic
MOST_OF_SEVERAL = 1.1  # ... to several of them: what a further one gains, no falling trend pays
NORMAL_95 = 1.96
# The memory of the noise is estimated and the model was picked, which the fit's own interval does
# not include: wider by this much, and by an event that the ends cut, 95% contain the truth
# (benchmarks/phases.py).
WIDER = 2.0
MOST_SAMPLES = 20_000  # of more, the latest are fitted
MOST_PHASES = 4  # more phases with a quarter of the growth each there cannot be


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEffect:
    """A phase that growth keeps step with.

    per_event, half_width: growth per event and half its 95% interval, in y's unit; share: of all
    growth. p_value: chance of a fit as good if growth were independent of the tags.
    """

    name: str
    per_event: float
    half_width: float
    share: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """A model that was tried: counters of one group, levels, and its criterion."""

    score: float
    group: int
    columns: tuple[int, ...]
    levels: tuple[int, ...]
    trend: tuple[int, ...]
    gain: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """The phases found, and the p-values of the others once those are allowed for."""

    found: tuple[PhaseEffect, ...]
    others: dict[str, float]


def regress(
    x: Floats, y: Floats, informative: Mask, groups: Sequence[Group], *, tests: int, seed: int
) -> Regression | None:
    """Phases that growth keeps step with, the strongest first.

    x, y: samples of the tagged stretch, shape (n,); informative: which of them count; tests: phases
    that there are in all, each of which might have been blamed by chance. None where the series is
    too short for the model; then only the attribution of single events decides.
    """
    if len(x) > MOST_SAMPLES:
        x, y, informative = x[-MOST_SAMPLES:], y[-MOST_SAMPLES:], informative[-MOST_SAMPLES:]
        groups = [Group(name=g.name, member=g.member[-MOST_SAMPLES:]) for g in groups]
    design = Design.build(x, y, informative, groups)
    if design is None:
        return None
    found: list[_Model] = []
    p_values: list[float] = []
    beside: tuple[int, ...] = ()
    while len(found) < min(MOST_PHASES, len(groups)):
        models, beside = _candidates(design, found)
        tried = (
            (model, min(1.0, _chance_of(design, model, found, beside, seed) * tests))
            for model in models
        )
        model, p_value = next((t for t in tried if t[1] <= ATTRIBUTION_P_VALUE), (None, 1.0))
        if model is None:
            break
        found.append(model)
        p_values.append(p_value)
    named = {model.group for model in found}
    others = {
        group.name: 1.0
        if design.is_long(g)
        else min(1.0, _chance(design, g, found, beside, seed) * tests)
        for g, group in enumerate(groups)
        if g not in named
    }
    return Regression(found=tuple(_effects(design, found, p_values)), others=others)


# ---- choice of a model -----------------------------------------------------------------------


def _candidates(design: Design, found: Sequence[_Model]) -> tuple[list[_Model], tuple[int, ...]]:
    """One model for each group that the criterion prefers by a margin, the likeliest first; and
    the levels and sawteeth that are needed if no further phase grows."""
    taken = {model.group for model in found}
    own = [column for model in found for column in model.columns]
    trends = (design.of[Kind.TREND], design.of[Kind.LEVEL_ALL])
    none = min((_grown(design, found, None, t) for t in trends), key=lambda c: c.score)
    ramps = design.of[Kind.RAMP]
    without = [c for c in (*none.trend, *none.levels, *own) if c not in ramps]
    beside = none.levels if _criterion(design, without) - none.score >= MARGIN else ()
    best: dict[int, _Model] = {}
    for group in range(len(design.groups)):
        if group in taken:
            continue
        least = MARGIN * (1 + design.is_long(group))
        for trend in trends:
            model = _grown(design, found, group, trend)
            gain = none.score - model.score
            better = gain >= (best[group].gain if group in best else least)
            if model.columns and better and _is_growth(design, found, model):
                best[group] = replace(model, gain=gain)
    most = max((model.gain for model in best.values()), default=0.0)
    near = [m for m in best.values() if m.gain >= most - TIE]
    first = min(near, key=lambda m: _unlikely(design, m), default=None)
    return sorted(best.values(), key=lambda m: (m is not first, -m.gain)), beside


def _grown(
    design: Design, found: Sequence[_Model], group: int | None, trend: Sequence[int]
) -> _Model:
    """Forward selection among levels and one group's counters (and more of those found)."""
    at = -1 if group is None else group
    own = [column for model in found for column in model.columns]
    known = design.counters({model.group for model in found} | {at})
    crept = [c for c in design.of[Kind.CREEP] if design.columns[c].group == at]
    levels = [*design.of[Kind.LEVEL], *design.of[Kind.TIME], *design.of[Kind.RAMP], *crept]
    open_ = [*levels, *known]
    chosen = [*trend, *own]
    rising = {*own, *known}
    score = _criterion(design, chosen)
    picked: list[int] = []
    while open_ and len(picked) < MOST_PICKED:
        taken_up = _next(design, chosen, open_, rising, score)
        if taken_up is None:
            break
        column, score = taken_up
        chosen = [*chosen, column]
        open_.remove(column)
        picked.append(column)
    columns = tuple(c for c in picked if c in known and design.columns[c].group == at)
    return _Model(
        score=score,
        group=at,
        columns=columns,
        levels=tuple(c for c in picked if c not in columns),
        trend=tuple(trend),
    )


def _next(
    design: Design, chosen: Sequence[int], open_: Sequence[int], rising: set[int], score: float
) -> tuple[int, float] | None:
    """The column that adds most and leaves the model possible, with the new criterion."""
    positive = {*rising, *design.of[Kind.RAMP]}
    gains = design.fit.gains(chosen, open_)
    gains = np.where([column in positive for column in open_], gains, np.abs(gains))
    for at in np.argsort(-gains):
        further = [*chosen, open_[at]]
        now = _criterion(design, further)
        if gains[at] <= 0 or now >= score:
            return None
        amounts = dict(zip(further, design.fit.amounts(further).tolist(), strict=True))
        falls = min((amounts[c] for c in further if c in positive), default=0.0) < 0
        grown = sum(amounts[c] * design.spans[c] for c in further if c in rising)
        if not falls and grown <= MOST_OF_RISE * design.rise:
            return open_[at], now
    return None


def _is_growth(design: Design, found: Sequence[_Model], model: _Model) -> bool:
    """Return True if each amount is growth, and together no more than there was.

    Time spent in a long phase is nearly the trend itself: what one gains the other loses, without a
    bound.
    """
    models = [*found, model]
    own = [column for each in models for column in each.columns]
    chosen = [*model.trend, *model.levels, *own]
    amounts = design.fit.amounts(chosen)[-len(own) :]
    weights = dict(zip(own, amounts.tolist(), strict=True))
    grown = [sum(weights[c] * design.spans[c] for c in each.columns) for each in models]
    most = MOST_OF_SEVERAL if found else MOST_OF_RISE
    return bool(min(grown) > 0 and sum(grown) <= most * design.rise)


def _unlikely(design: Design, model: _Model) -> tuple[bool, float, bool]:
    """Of phases that explain the growth equally well, one without samples is named: growth before
    and after it is as likely to fall into the gap. Then the most specific; where that does not
    differ much, the one whose own samples show the growth."""
    inside = design.columns[model.columns[0]].inside
    seen = design.unseen(model.group) < MOST_UNSEEN
    return seen, design.samples_in(model.group) * (1 if inside else LONGER), not inside


def _criterion(design: Design, chosen: Sequence[int]) -> float:
    """Bayesian information criterion of these columns."""
    n = len(design.fit.target)
    variance = design.fit.rss(chosen) / n + design.least**2
    return n * math.log(max(variance, 1e-300)) + len(chosen) * math.log(n)


# ---- chance ----------------------------------------------------------------------------------


def _chance(
    design: Design, group: int, found: Sequence[_Model], beside: Sequence[int], seed: int
) -> float:
    """Chance of the best of the group's counters, given what was found before.

    A level that the phases hold temporarily is allowed for, so that rising into a phase counts for
    nothing without staying up after it.
    """
    base = [*design.of[Kind.TREND], *design.of[Kind.LEVEL], *design.of[Kind.TIME]]
    base += [c for c in beside if c in design.of[Kind.RAMP]]
    base += [c for model in found for c in model.columns]
    own = design.counters({group})
    if not own:
        return 1.0
    kernels = [a / max(float(np.linalg.norm(a)), 1e-12) for a in design.fit.apart(own, base)]
    cycles = cycles_at(design.starts[group], len(design.fit.target))
    return rotated(design.fit.residual(base), kernels, cycles, seed=seed)


def _chance_of(
    design: Design, model: _Model, found: Sequence[_Model], beside: Sequence[int], seed: int
) -> float:
    """Chance of a model that was tried, with its own sawteeth and with those of no further phase:
    what only one of the two readings shows does not count."""
    own = _chance(design, model.group, found, model.levels, seed)
    differ = ({*model.levels} ^ {*beside}) & {*design.of[Kind.RAMP]}
    if not differ or own > ATTRIBUTION_P_VALUE:
        return own
    return max(own, _chance(design, model.group, found, beside, seed))


# ---- amounts ---------------------------------------------------------------------------------


def _effects(
    design: Design, found: Sequence[_Model], p_values: Sequence[float]
) -> Iterator[PhaseEffect]:
    """Amounts of one joint fit."""
    if not found:
        return
    fit = design.fit
    own = list(dict.fromkeys(column for model in found for column in model.columns))
    levels = [level for level in found[-1].levels if level not in own]
    chosen = [*found[-1].trend, *own, *levels]
    weights = fit.amounts(chosen)
    freedom = max(len(fit.target) - len(chosen), 1)
    variance = fit.rss(chosen) / freedom + design.least**2
    covariance = np.linalg.pinv(fit.gram[np.ix_(chosen, chosen)], rcond=1e-10) * variance
    grown = design.spans[chosen] * weights
    columns = [design.columns[i] for i in chosen]
    at = [
        [i for i, c in enumerate(columns) if c.kind is Kind.COUNTER and c.group == model.group]
        for model in found
    ]
    kept = [i for i, c in enumerate(columns) if c.kind not in (Kind.LEVEL, Kind.CREEP, Kind.RAMP)]
    total = float(sum(grown[i].sum() for i in at) if design.is_mark else grown[kept].sum())
    # What a mark adds late and bit by bit belongs to the events that it began at.
    whole = design.rise / total if design.is_mark and total > 0 else 1.0
    for model, own_at, p_value in zip(found, at, p_values, strict=True):
        # Each counter rises by one per event, so that an event keeps the sum of the weights.
        part = 1.0 / fit.scale[[chosen[i] for i in own_at]]
        error = math.sqrt(max(float(part @ covariance[np.ix_(own_at, own_at)] @ part), 0.0))
        events = max(len(design.starts[model.group]), 1)
        half = NORMAL_95 * math.hypot(error, design.quantum / math.sqrt(6) / events)
        per_event = float(weights[own_at].sum()) * whole
        yield PhaseEffect(
            name=design.groups[model.group].name,
            per_event=per_event,
            half_width=math.hypot(WIDER * half * max(whole, 1.0), per_event / events),
            share=float(grown[own_at].sum()) / total if total > 0 else 0.0,
            p_value=p_value,
        )

"""Cycles of a sawtooth or of spikes, reduced to what each leaves behind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.preprocessing.period import regular_starts
from memdiag.analysis.preprocessing.tooth_levels import climb, long_run, within
from memdiag.analysis.preprocessing.transients import lasting
from memdiag.analysis.stats.median import median
from memdiag.analysis.stats.noise import UNIFORM, between_spikes, least_noise

if TYPE_CHECKING:
    from memdiag.analysis.policy import Policy, Preparation
    from memdiag.values.measurements import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """What is judged of a series, and the cycles that it was taken from.

    x, y: the floor of each cycle after the first big drop, shape (cycles,), or the readings
        themselves where there are too few cycles.
    falls: big drops. floors: y holds floors. peak_x, peaks: of each cycle, else empty.
    blur: how much a floor may be off because samples miss the moment of the drop.
    noise: standard deviation of one floor, 0 where it is that of one reading.
    climb: slope of the levels of too few teeth over its standard error.
    """

    x: Floats
    y: Floats
    falls: int
    peak_x: Floats
    peaks: Floats
    blur: float = 0.0
    noise: float = 0.0
    climb: float = 0.0
    floors: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bases:
    """Where each cycle began. blur: how far off, in y's unit; noise: standard deviation of one."""

    y: Floats
    blur: float
    noise: float

    @property
    def error(self) -> float:
        """Standard deviation of one, what samples miss included."""
        return math.hypot(self.noise, self.blur * UNIFORM)


def cycles(
    x: Floats, y: Floats, noises: tuple[float, float], level: float, policy: Policy
) -> Cycles:
    """The floor after every big drop of a sawtooth or of spikes: what survives a collection.

    noises: of one reading as seen, and the least it can have. Where every second to fourth reading
    is a spike, they make up the one that is seen, and no drop is big beside it.
    """
    noise, least = noises
    found = _cycles(x, y, noise, level, policy)
    if found.floors or found.falls >= policy.common.cycles or noise <= least:
        return found
    without_spikes = max(between_spikes(y), least)
    of_spikes = policy.common.short_share * noise
    if without_spikes >= of_spikes:
        return found
    spiky = _cycles(x, y, without_spikes, level, policy, of_spikes)
    return spiky if spiky.floors else found


def _cycles(
    x: Floats, y: Floats, noise: float, level: float, policy: Policy, of_spikes: float = 0.0
) -> Cycles:
    """`of_spikes`: least drop where cycles are looked for that are spikes."""
    limit = max(
        policy.common.clear_noises * noise, policy.preparation.drop_share * level, of_spikes
    )
    big = _descents(y, _alike(y, np.flatnonzero(np.diff(y) < -limit), policy.common.little))
    none = np.empty(0)
    whole = Cycles(x=x, y=y, falls=len(big), peak_x=none, peaks=none)
    recur = _recur(big, len(y), policy)
    starts = np.concatenate((big + 1, [len(y)]))
    if recur:
        top = np.array([a + int(np.argmax(y[a:b])) for a, b in pairwise(starts)])
        whole = replace(whole, peak_x=x[top], peaks=y[top])
    left = big
    many = max(policy.common.blocks, len(y) / policy.common.few_samples)
    if len(big) and (not recur or len(big) < many):
        kept = lasting(x, y, big, policy)
        left = np.flatnonzero(np.diff(y[kept]) < -limit)
        recur = recur and _recur(left, int(kept.sum()), policy)
        whole = whole if recur else replace(whole, x=x[kept], y=y[kept])
    if not recur:
        few = 2 <= len(left) < policy.common.cycles
        return replace(whole, climb=climb(whole.x, whole.y, left, policy)) if few else whole
    return _on_floors(whole, starts, noise, policy, spiky=of_spikes > 0)


def _alike(y: Floats, drops: Ints, least: float) -> Ints:
    """The drops without those that are small beside the usual one: these end no cycle."""
    if len(drops) < 2:
        return drops
    sizes = y[drops] - y[drops + 1]
    alike: Ints = drops[sizes >= least * median(sizes)]
    return alike


def _descents(y: Floats, drops: Ints) -> Ints:
    """The last drop of each descent: of several without a rise between them."""
    if len(drops) < 2:
        return drops
    rises = y[drops[1:]] > y[drops[:-1] + 1]
    last: Ints = drops[np.append(rises, True)]
    return last


def _on_floors(whole: Cycles, starts: Ints, noise: float, policy: Policy, *, spiky: bool) -> Cycles:
    """The same judged on the floors of the cycles that begin at `starts`; of spikes, which climb
    too little for a pace, on the least readings where these scatter less."""
    x, y, misfit = whole.x, whole.y, policy.common.margin
    index = np.array([a + int(np.argmin(y[a:b])) for a, b in pairwise(starts)])
    floors, bases = y[index], _bases(x, y, starts, policy)
    lowest = _Bases(y=floors, blur=_missed(y, index, starts), noise=max(noise, least_noise(floors)))
    scattered = least_noise(bases.y) >= max(least_noise(floors), misfit * bases.error)
    if scattered or (spiky and misfit * lowest.error < bases.error):
        bases = replace(lowest, noise=noise)
    return replace(whole, x=x[index], y=bases.y, floors=True, blur=bases.blur, noise=bases.noise)


def _missed(y: Floats, lowest: Ints, starts: Ints) -> float:
    """How much a cycle's least reading may be above its start, as samples miss the drop: the step
    to the nearer of the readings beside it in the same cycle."""
    steps = [
        min(abs(y[i] - y[j]) for j in (i - 1, i + 1) if a <= j < b)
        for i, (a, b) in zip(lowest.tolist(), pairwise(starts.tolist()), strict=True)
        if b - a > 1
    ]
    return median(steps) if steps else 0.0


def _bases(x: Floats, y: Floats, starts: Ints, policy: Policy) -> _Bases:
    """Where each cycle began, from all of its samples, and how far that may be off.

    Middle of y minus the usual climb since the cycle's start. Where the cycles come at a fixed
    period (counted in samples, or along x), the start is known between two samples.
    """
    found = []
    for clock in (np.arange(len(x), dtype=float), x):
        resets, off = _resets(clock, starts, policy.preparation)
        since = clock[starts[0] :] - np.repeat(resets, np.diff(starts))
        edges = starts[1:-1] - starts[0]
        times, values = np.split(since, edges), np.split(y[starts[0] :], edges)
        paces = _paces(times, values)
        found += [_at_pace(pace, times, values, off, policy) for pace in paces]
    return min(found, key=lambda bases: bases.error)


def _paces(times: list[Floats], values: list[Floats]) -> Iterator[float]:
    """The climb within a cycle: of the middle step, and of a line through all of them."""
    steps = np.concatenate([np.diff(v) / np.diff(t) for t, v in zip(times, values, strict=True)])
    yield median(steps) if len(steps) else 0.0
    yield within(list(zip(times, values, strict=True)))


def _at_pace(
    pace: float, times: list[Floats], values: list[Floats], off: float, policy: Policy
) -> _Bases:
    """Bases where cycles climb at `pace`; off: of their starts, in the clock's unit."""
    rests = [v - pace * t for t, v in zip(times, values, strict=True)]
    bases = np.array([median(rest) for rest in rests])
    usual = median([len(rest) for rest in rests])
    error = MEDIAN_ERROR * long_run(rests, policy) / math.sqrt(usual)
    return _Bases(y=bases, blur=abs(pace) * off, noise=error)


MEDIAN_ERROR = 1.2533  # exact: sqrt(pi / 2)
"""Standard error of a median over that of a mean, for normal noise."""


def _resets(clock: Floats, starts: Ints, given: Preparation) -> tuple[Floats, float]:
    """When cycles began on a clock, and by how much that may be wrong, in the clock's unit.

    Of cycles with a period that error is what the samples leave open of the period, over the whole
    run: a wrong start of all cycles alike makes none of them rise.
    """
    seen = clock[starts[:-1]]
    exact = regular_starts(clock[starts[:-1] - 1], seen, given.most_cycles)
    if exact is not None:
        return exact
    number = np.arange(len(seen), dtype=float)
    period = float(np.polyfit(number, seen, 1)[0])
    fitted = seen.mean() + period * (number - number.mean())
    sample = median(np.diff(clock))
    if float(np.abs(seen - fitted).max()) < sample:
        return fitted, sample
    return seen, sample


def _recur(drops: Ints, n: int, policy: Policy) -> bool:
    """Return True if drops recur over the whole run."""
    if len(drops) < policy.common.cycles:
        return False
    gaps = np.diff(drops)
    longest = max(int(gaps.max()), int(drops[0]), n - 1 - int(drops[-1]))
    return longest <= policy.common.cycles * median(gaps)

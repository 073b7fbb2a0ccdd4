"""One resolution of a series, cut into regimes: what the rules look at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.policy import Policy
from memdiag.analysis.preprocessing.prepare import Prepared
from memdiag.analysis.stats.changepoint import Binned, Piece, Segmentation, bins, segment
from memdiag.analysis.stats.median import mean, median
from memdiag.analysis.stats.slope_test import Trend, line, trend
from memdiag.analysis.stats.turning_points import Waves, waves

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeFit:
    """A series at one resolution, and the last regime averaged over where it may have begun.

    tail: first bin of the last regime, heaviest start. trend: its slope. growing: weight of a last
    regime with a material slope, over all places where it may have begun, 0..1.
    """

    prepared: Prepared
    binned: Binned
    segmentation: Segmentation
    tail: int
    trend: Trend
    growing: float

    @property
    def p_growth(self) -> float:
        """p-value of "the last regime does not grow", doubled because its start was picked."""
        return min(1.0, 2 * self.trend.p_growth)

    @property
    def floor(self) -> float:
        """Least noise of one bin's value."""
        return self.binned.floor(self.prepared.noise)

    @property
    def first_sample(self) -> int:
        """Index of the last regime's first prepared sample."""
        return int(self.binned.start[self.tail])

    @property
    def tail_samples(self) -> int:
        """Prepared samples in the last regime."""
        return len(self.prepared.x) - self.first_sample

    @property
    def before(self) -> list[Piece]:
        """The regimes before the last one, latest first."""
        return [p for p in reversed(self.segmentation.pieces) if p.first < self.tail]

    @property
    def is_one_step(self) -> bool:
        """Return True if the last regime rose by no more than the step that readings move by."""
        x = self.binned.x
        rise = self.trend.slope * float(x[-1] - x[self.tail])
        return 0 < rise < self.prepared.quantum

    def from_bin(self, first: int) -> RegimeFit:
        """The same fit with its last regime taken to begin at bin `first`."""
        fitted = trend(self.binned.x[first:], self.binned.y[first:], self.floor)
        return replace(self, tail=first, trend=fitted)

    def rose(self, policy: Policy) -> bool:
        """Return True if the level rose before the last regime: a warm-up, not a stable run.

        Where all is one regime, its first reading must be below all of its second half.
        """
        y, few = self.binned.y, policy.common.fewest
        if self.tail == 0:
            rise = float(np.min(y[len(y) // 2 :]) - y[0])
        else:
            rise = median(y[self.tail :]) - float(np.min(y[: min(few, self.tail)]))
        return rise > policy.common.stable_growth * self.prepared.level

    def waves(self, policy: Policy, turn: float, first: int = 0) -> Waves | None:
        """The slow waves from bin `first` on. turn: part of the range that makes one."""
        x, y = self.binned.x[first:], self.binned.y[first:]
        return waves(x, y, policy.common.clear_noises * self.floor, turn)


def fit_regimes(prepared: Prepared, policy: Policy) -> RegimeFit:
    """Cut into regimes and weigh the trend of the last one."""
    binned = bins(prepared.x, prepared.y, policy.segmentation.bins)
    floor = binned.floor(prepared.noise)
    segmentation = segment(binned.x, binned.y, floor, policy)
    stable_slope = (
        policy.common.stable_growth
        * prepared.level
        / max(policy.horizon(prepared.axis.kind), prepared.run, 1e-300)
    )
    growing, level = _by_growth(segmentation, binned, stable_slope)
    weight = sum(growing.values())
    last = growing if weight > policy.common.growing_weight else level
    tail = _heaviest(last or growing, segmentation, len(binned.x), policy.common.fewest)
    return RegimeFit(
        prepared=prepared,
        binned=binned,
        segmentation=segmentation,
        tail=tail,
        trend=trend(binned.x[tail:], binned.y[tail:], floor),
        growing=weight,
    )


def _by_growth(
    segmentation: Segmentation, binned: Binned, stable_slope: float
) -> tuple[dict[int, float], dict[int, float]]:
    """Possible first bins of the last regime with their weights: where it grows, and where not."""
    growing: dict[int, float] = {}
    level: dict[int, float] = {}
    for start, flat, weight in segmentation.tails:
        grows = not flat and line(binned.x[start:], binned.y[start:])[1] > stable_slope
        starts = growing if grows else level
        starts[start] = starts.get(start, 0.0) + weight
    return growing, level


def _heaviest(starts: dict[int, float], segmentation: Segmentation, n: int, least: int) -> int:
    """The heaviest of the first bins that leave enough of the last regime."""
    enough = [start for start in starts if n - start >= min(least, n)]
    if not enough:
        return min(segmentation.pieces[-1].first, max(n - 2, 0))
    return max(enough, key=starts.__getitem__)


def r_squared(x: Floats, y: Floats) -> float:
    """Share of the variance of `y` that a line over `x` explains, 0..1."""
    level, slope = line(x, y)
    rest = y - level - slope * (x - mean(x))
    power = float(((y - level) ** 2).sum())
    return 1 - float(rest @ rest) / power if power > 0 else 0.0

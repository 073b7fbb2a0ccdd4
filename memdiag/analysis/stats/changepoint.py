"""Cut a series into regimes: exact optimal partitioning into flat and sloped lines.

Bellman's recursion over all partitions (Jackson et al. 2005, "optimal partitioning") on at most
some hundred bins, where it is exact and costs milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.median import mean, median
from memdiag.analysis.stats.noise import MAD, least_noise, long_run_factor
from memdiag.analysis.stats.slope_test import line

if TYPE_CHECKING:
    from memdiag.analysis.policy import Policy
    from memdiag.values.measurements import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Binned:
    """A series reduced to bins: mean position and reading, samples per bin; shape (bins,).

    start: index of each bin's first sample, shape (bins + 1,), the last entry being the end.
    """

    x: Floats
    y: Floats
    start: Ints

    @property
    def width(self) -> float:
        """Mean samples per bin."""
        return float(self.start[-1] - self.start[0]) / max(len(self.x), 1)

    def floor(self, noise: float) -> float:
        """Least noise of one bin's value, where that of one sample is `noise`."""
        return noise / math.sqrt(max(self.width, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One regime: bins [first, last), its fitted slope (0 where the flat model won)."""

    first: int
    last: int
    slope: float
    flat: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Segmentation:
    """The best partition and how much its last break is worth against the others.

    pieces: the regimes in order. tails: (first bin of the last regime, flat?, weight), weights
    adding to 1, heaviest first. noise: long-run standard deviation used.
    """

    pieces: tuple[Piece, ...]
    tails: tuple[tuple[int, bool, float], ...]
    noise: float


def bins(x: Floats, y: Floats, count: int) -> Binned:
    """Reduce to at most `count` bins of equally many samples (mean x, midmean y)."""
    n = len(y)
    if n <= count:
        return Binned(x=x, y=y, start=np.arange(n + 1))
    return _between(x, y, np.linspace(0, n, count + 1).round().astype(np.int64))


def stretches(x: Floats, y: Floats, count: int, policy: Policy) -> Binned:
    """`bins`, but of equally long stretches of the way where readings are dense in one part of it
    and rare in another: bins of equally many would have their edges in the dense one.

    Stretches without readings are left out; by number all the same where those are many.
    """
    n = len(y)
    if n <= count:
        return bins(x, y, count)
    edges = np.searchsorted(x, np.linspace(x[0], x[-1], count + 1)[1:-1], side="right")
    edges = np.unique(np.concatenate(([0], edges, [n]))).astype(np.int64)
    held = np.diff(edges)
    if (
        len(held) < (1 - policy.common.short_share) * count
        or held.max() < policy.common.fewest * held.min()
    ):
        return bins(x, y, count)
    return _between(x, y, edges)


def _between(x: Floats, y: Floats, edges: Ints) -> Binned:
    sums = np.add.reduceat(x, edges[:-1])
    return Binned(x=sums / np.diff(edges), y=_midmeans(y, edges), start=edges)


def _midmeans(y: Floats, edges: Ints) -> Floats:
    """Mean of the middle half of y in each [edges[i], edges[i+1]).

    As robust as a median against spikes, and unlike it moves when quantised readings drift. Few
    different widths occur, so a few reshapes are enough.
    """
    widths = np.diff(edges)
    out = np.empty(len(widths))
    for width in np.unique(widths):
        rows = np.flatnonzero(widths == width)
        index = edges[rows][:, None] + np.arange(width)[None, :]
        cut = width // 4  # exact: a midmean leaves out a quarter on each side
        out[rows] = np.sort(y[index], axis=1)[:, cut : width - cut].mean(axis=1)
    return out


def segment(x: Floats, y: Floats, floor: float, policy: Policy) -> Segmentation:
    """Partition a binned series into regimes. `floor`: least noise of one bin.

    Two passes: the residuals of the first give the long-run variance
    var * (1 + phi) / (1 - phi) for the second, so that autocorrelated noise is not cut up.
    """
    n, fewest = len(y), policy.common.fewest
    if n <= fewest:
        return Segmentation(
            pieces=(Piece(first=0, last=n, slope=0.0, flat=True),),
            tails=((0, True, 1.0),),
            noise=floor,
        )
    size = fewest if n > fewest**2 else 2
    noise = max(least_noise(y), floor)
    costs = _costs(x, y)
    result = _partition(x, y, costs, noise, size, policy)
    for _ in range(2):
        noise = max(_long_run_noise(x, y, result.pieces, policy), floor)
        if noise == result.noise:
            break
        result = _partition(x, y, costs, noise, size, policy)
    return result


def _costs(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Residual sums of squares of every [a, b): flat and sloped model, shape (n + 1, n + 1)."""
    n = len(y)
    u = (x - mean(x)) / max(float(np.ptp(x)), 1e-300)
    v = y - mean(y)
    sums = np.zeros((5, n + 1))  # exact: five sums
    np.cumsum(np.stack([u, v, u * u, u * v, v * v]), axis=1, out=sums[:, 1:])
    part = sums[:, None, :] - sums[:, :, None]
    k = np.maximum(np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None], 1).astype(float)
    su, sv, suu, suv, svv = part
    # In place, since a new matrix for each step takes longer than the step:
    # vu = suu - su * su / k, cuv = suv - su * sv / k, flat = svv - sv * sv / k.
    both = su * sv
    both /= k
    suv -= both
    su *= su
    su /= k
    suu -= su
    vu = np.maximum(suu, 1e-12, out=suu)  # exact: rounding of doubles
    sv *= sv
    sv /= k
    svv -= sv
    flat = np.maximum(svv, 0, out=svv)
    suv *= suv
    suv /= vu
    return flat, np.maximum(flat - suv, 0)


def _partition(
    x: Floats, y: Floats, costs: tuple[Floats, Floats], noise: float, size: int, policy: Policy
) -> Segmentation:
    n = len(y)
    flat_cost, line_cost = costs
    least = 1e-24 * float(flat_cost[0, n])  # exact: the resolution of doubles, squared
    s2, given = max(noise * noise, least, 1e-300), policy.segmentation
    per_parameter = math.log(n)
    flat_all = flat_cost / s2 + given.flat_cost * per_parameter
    line_all = line_cost / s2 + (given.flat_cost + 1) * per_parameter
    ending = np.ascontiguousarray(np.minimum(flat_all, line_all).T)  # each row is read at once
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    back = np.zeros(n + 1, dtype=np.int64)
    best[1] = (
        given.flat_cost - 1
    ) * per_parameter  # the first reading may stand alone: before anything was loaded
    for b in range(size, n + 1):
        total = best[: b - size + 1] + ending[b, : b - size + 1]
        first = total.argmin()
        back[b], best[b] = first, total[first]
    pieces = _backtrack(x, y, back, flat_all, line_all)
    tails = _tails(best, flat_all, line_all, size, given.least_weight)
    return Segmentation(pieces=pieces, tails=tails, noise=noise)


def _backtrack(
    x: Floats, y: Floats, back: Ints, flat_all: Floats, line_all: Floats
) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    end = len(y)
    while end > 0:
        first = int(back[end])
        flat = bool(flat_all[first, end] <= line_all[first, end])
        slope = 0.0 if flat else line(x[first:end], y[first:end])[1]
        pieces.append(Piece(first=first, last=end, slope=slope, flat=flat))
        end = first
    return tuple(reversed(pieces))


def _tails(
    best: Floats, flat_all: Floats, line_all: Floats, size: int, least: float
) -> tuple[tuple[int, bool, float], ...]:
    """Weights exp(-cost / 2) of every last break and model, those above the least kept."""
    n = len(best) - 1
    starts = np.arange(0, n - size + 1)
    total = np.concatenate([best[starts] + flat_all[starts, n], best[starts] + line_all[starts, n]])
    weight = np.exp((total.min() - total) / 2)
    weight /= weight.sum()
    order = np.argsort(-weight, kind="stable")
    kept = order[weight[order] > least]
    share = float(weight[kept].sum())
    return tuple(
        zip(
            starts[kept % len(starts)].tolist(),
            (kept < len(starts)).tolist(),
            (weight[kept] / share).tolist(),
            strict=True,
        )
    )


def _long_run_noise(x: Floats, y: Floats, pieces: tuple[Piece, ...], policy: Policy) -> float:
    rest = np.concatenate([_residuals(x[p.first : p.last], y[p.first : p.last], p) for p in pieces])
    n = len(rest)
    usual = MAD * median(np.abs(rest))
    if usual > 0:  # the few bins of a curved warm-up must not inflate the noise estimate
        clip = policy.common.noises * usual
        rest = np.clip(rest, -clip, clip)
    power = float(rest @ rest)
    if power <= 0:
        return 0.0
    phi = float(rest[1:] @ rest[:-1]) / power
    phi += 4 / n  # exact: its bias near 1, (1 + 3 phi) / n (Marriott and Pope 1954)
    phi = min(max(phi, 0.0), policy.segmentation.memory)
    used = sum(1 if p.flat else 2 for p in pieces)
    return math.sqrt(power / max(n - used, 2) * long_run_factor(phi))


def _residuals(x: Floats, y: Floats, piece: Piece) -> Floats:
    rest: Floats = y - mean(y) - piece.slope * (x - mean(x))
    return rest

"""Cut a series into regimes: exact optimal partitioning into flat and sloped lines.

Bellman's recursion over all partitions (Jackson et al. 2005, "optimal partitioning") on at most
some hundred bins, where it is exact and costs milliseconds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.median import mean, median
from memdiag.analysis.stats.noise import MAD, least_noise, long_run_factor
from memdiag.analysis.stats.slope_test import line

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    """Reduce to at most `count` bins of equally many samples (midmeans of x and y)."""
    n = len(y)
    if n <= count:
        return Binned(x=x, y=y, start=np.arange(n + 1))
    return _between(x, y, np.rint(np.arange(count + 1) * (n / count)).astype(np.int64))


def stretches(x: Floats, y: Floats, count: int, policy: Policy) -> Binned:
    """`bins`, but of equally long stretches of the way where readings are dense in one part of it
    and rare in another: bins of equally many would have their edges in the dense one.

    Stretches without readings are left out; by number all the same where those are many.
    """
    n = len(y)
    if n <= count:
        return bins(x, y, count)
    inner = x[0] + np.arange(1, count) * ((x[-1] - x[0]) / count)
    edges = np.concatenate(([0], np.searchsorted(x, inner, side="right"), [n])).astype(np.int64)
    edges = edges[np.append(edges[1:] > edges[:-1], True)]
    held = edges[1:] - edges[:-1]
    if (
        len(held) < (1 - policy.common.short_share) * count
        or held.max() < policy.common.fewest * held.min()
    ):
        return bins(x, y, count)
    return _between(x, y, edges)


def _between(x: Floats, y: Floats, edges: Ints) -> Binned:
    starts, widths = edges[:-1], edges[1:] - edges[:-1]
    return Binned(x=_midmeans(x, starts, widths), y=_midmeans(y, starts, widths), start=edges)


def _midmeans(y: Floats, starts: Ints, widths: Ints) -> Floats:
    """Mean of the middle half of each stretch of y; of x as well, so that a line stays one where
    the readings are not evenly spaced.

    As robust as a median against spikes, and unlike it moves when quantised readings drift. Few
    different widths occur, so a few reshapes are enough.
    """
    out = np.empty(len(widths))
    for width in set(widths.tolist()):
        rows = widths == width
        ranked = y[starts[rows, None] + np.arange(width)]
        ranked.sort(axis=1)
        cut = width // 4  # exact: a midmean leaves out a quarter on each side
        middle = ranked[:, cut : width - cut]
        out[rows] = np.add.reduce(middle, axis=1) / middle.shape[1]
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
    costs = _costs(x, y, size)
    noise = max(least_noise(y), floor)
    found = _partition(x, y, costs, noise, size, policy)
    for _ in range(2):
        noise = max(_long_run_noise(x, y, found.pieces, policy), floor)
        if noise == found.noise:
            break
        found = _partition(x, y, costs, noise, size, policy)
    return Segmentation(pieces=found.pieces, tails=_tails(found, policy), noise=found.noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partition:
    """The best partition at one noise. best: its cost up to each bin that a last regime may begin
    at, shape (starts,). flat, sloped: cost of a last regime of each model from there on."""

    pieces: tuple[Piece, ...]
    best: Floats
    flat: Floats
    sloped: Floats
    noise: float


def _costs(x: Floats, y: Floats, size: int) -> tuple[Floats, Floats]:
    """Residual sums of squares, flat and sloped model, of every [a, b) of `size` bins or more:
    first those that end at b = size, then those at size + 1 and so on, each ascending in a."""
    u = (x - mean(x)) / max(float(np.ptp(x)), 1e-300)
    v = y - mean(y)
    k, su, vu = _of_positions(u.tobytes(), size)
    sv, suv, svv = _sums(size, v, u * v, v * v)
    # In place, since a new array for each step takes longer than the step:
    # cuv = suv - su * sv / k, flat = svv - sv * sv / k.
    both = su * sv
    both /= k
    suv -= both
    sv *= sv
    sv /= k
    svv -= sv
    flat = np.maximum(svv, 0, out=svv)
    suv *= suv
    suv /= vu
    sloped = np.subtract(flat, suv, out=suv)
    return flat, np.maximum(sloped, 0, out=sloped)


@functools.lru_cache(maxsize=4)  # exact: keeps what was computed, decides nothing
def _of_positions(positions: bytes, size: int) -> tuple[Floats, Floats, Floats]:
    """What the costs need of the positions, which the series of a recording have in common: bins
    of [a, b), sum of the positions, and their sum of squares about the mean."""
    u = np.frombuffer(positions)
    first, last = _ends(len(u), size)
    k = (last - first).astype(float)
    su, vu = _sums(size, u, u * u)
    vu -= su * su / k
    return k, su, np.maximum(vu, 1e-12)  # exact: rounding of doubles


@functools.lru_cache(maxsize=4)  # exact: keeps what was computed, decides nothing
def _ends(n: int, size: int) -> tuple[Ints, Ints]:
    """The first bin, and the one after the last, of every [a, b) in the order of `_costs`."""
    after, first = np.tril_indices(n + 1 - size)
    return first, after + size


def _sums(size: int, *values: Floats) -> Floats:
    """The sum of each of the values over every [a, b), shape (values, [a, b) of `_costs`)."""
    n = len(values[0])
    sums = np.zeros((len(values), n + 1))
    np.cumsum(np.stack(values), axis=1, out=sums[:, 1:])
    first, last = _ends(n, size)
    found: Floats = sums.take(last, axis=1)
    found -= sums.take(first, axis=1)
    return found


def _partition(
    x: Floats, y: Floats, costs: tuple[Floats, Floats], noise: float, size: int, policy: Policy
) -> _Partition:
    n = len(y)
    starts = n + 1 - size  # of a last regime
    least = 1e-24 * float(costs[0][-starts])  # exact: the resolution of doubles, squared
    s2 = max(noise * noise, least, 1e-300)
    # Costs are in units of s2 only where they leave: that spares divisions of all of them.
    parameter = s2 * math.log(n)
    own = policy.segmentation.flat_cost * parameter
    flat, sloped = costs[0] + own, costs[1] + (own + parameter)
    ending = np.minimum(flat, sloped)
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    best[1] = own - parameter  # the first reading may stand alone: before anything was loaded
    back = [0] * (n + 1)
    at = 0
    for count, end in enumerate(range(size, n + 1), 1):
        total = best[:count] + ending[at : at + count]
        back[end] = first = int(total.argmin())
        best[end] = total[first]
        at += count
    return _Partition(
        pieces=_backtrack(x, y, back, flat <= sloped, size),
        best=best[:starts] / s2,
        flat=flat[-starts:] / s2,
        sloped=sloped[-starts:] / s2,
        noise=noise,
    )


def _backtrack(
    x: Floats, y: Floats, back: Sequence[int], is_flat: NDArray[np.bool_], size: int
) -> tuple[Piece, ...]:
    """back: of a regime that ends before each bin, where it best begins. is_flat: which model is
    the better one, in the order of `_costs`."""
    pieces: list[Piece] = []
    end = len(y)
    while end > 0:
        first, row = back[end], end - size
        flat = row < 0 or bool(is_flat[row * (row + 1) // 2 + first])
        slope = 0.0 if flat else line(x[first:end], y[first:end])[1]
        pieces.append(Piece(first=first, last=end, slope=slope, flat=flat))
        end = first
    return tuple(reversed(pieces))


def _tails(found: _Partition, policy: Policy) -> tuple[tuple[int, bool, float], ...]:
    """Weights exp(-cost / 2) of every last break and model, those above the least kept."""
    starts = len(found.best)
    total = np.concatenate([found.best + found.flat, found.best + found.sloped])
    weight = np.exp((total.min() - total) / 2)
    weight /= weight.sum()
    kept = np.flatnonzero(weight > policy.segmentation.least_weight)
    kept = kept[np.argsort(-weight[kept], kind="stable")]
    share = float(weight[kept].sum())
    return tuple(
        zip(
            (kept % starts).tolist(),
            (kept < starts).tolist(),
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
        rest = np.minimum(np.maximum(rest, -clip), clip)
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

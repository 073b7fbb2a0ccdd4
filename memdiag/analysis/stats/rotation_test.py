"""Rotation test: the probability that growth falls into a phase by chance alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats, Ints

    Mask = NDArray[np.bool_]

EXACT_MOST = 4096  # arrangements that are all tried; beyond that random ones
RANDOM_ARRANGEMENTS = 4999  # p-values down to 1/5000
MOST_CYCLES = 512  # more cycles are thinned evenly: the p-value is at its floor long before


def cycles_between(inside: Mask) -> list[Ints]:
    """Index sets of the cycles of a phase: from one start of an event to the next.

    What precedes the first joins what follows the last.
    """
    return cycles_at(np.flatnonzero(inside & ~np.r_[False, inside[:-1]]), len(inside))


def cycles_at(starts: Ints, count: int) -> list[Ints]:
    """`count` intervals, cut at the given indices."""
    index = np.arange(count)
    if len(starts) == 0:
        return [index]
    pieces = np.split(index, starts)
    return [*pieces[1:-1], np.r_[pieces[-1], pieces[0]]]


def rotated(
    values: Floats, kernels: Sequence[Floats], cycles: Sequence[Ints], *, seed: int
) -> float:
    """P(max over kernels of sum(values * kernel) is as large as seen) under rotated cycles.

    Null: within each cycle of the phase the values may come at any moment, independently from
    cycle to cycle; so each cycle's values are rotated against its tags by its own offset. With a
    single cycle this is the plain circular shift. (A common shift of everything has only as many
    distinct outcomes as a cycle has samples when phases alternate regularly, and could never
    show anything.) Rotation keeps clumps together and makes a long phase expect much growth.
    Growth that keeps step with the cycles for a reason of its own looks the same.
    p = (1 + #{arrangements >= seen}) / (1 + arrangements): Phipson & Smyth 2010, eq. 2.
    """
    if len(cycles) > MOST_CYCLES:
        pick = np.linspace(0, len(cycles) - 1, MOST_CYCLES).round().astype(int)
        cycles = [cycles[i] for i in pick]
    stacked = np.stack(kernels)
    tables = [_rotations(values[c], stacked[:, c]) for c in cycles]
    seen = float(np.sum([table[:, 0] for table in tables], axis=0).max())
    tolerance = 1e-9 * float(np.abs(values).sum()) * max(float(np.abs(k).max()) for k in kernels)
    outcomes = _arranged(tables, len(kernels), seed)
    as_large = int(np.count_nonzero(outcomes >= seen - tolerance))
    if _count(tables) <= EXACT_MOST:
        return as_large / len(outcomes)  # the arrangement seen is one of them
    return (1 + as_large) / (1 + len(outcomes))


def _rotations(values: Floats, kernels: Floats) -> Floats:
    """Sum of values * kernel for every kernel (kernels, n) and every rotation of the values, the
    unrotated one first, shape (kernels, n)."""
    spectrum = np.fft.rfft(values) * np.conj(np.fft.rfft(kernels))
    sums: Floats = np.fft.irfft(spectrum, len(values))
    return sums


def _count(tables: list[Floats]) -> int:
    count = 1
    for table in tables:
        count *= table.shape[1]
        if count > EXACT_MOST:
            break
    return count


def _arranged(tables: list[Floats], kernels: int, seed: int) -> Floats:
    """The sums of every arrangement, or of random ones where there are too many."""
    if _count(tables) <= EXACT_MOST:
        sums = [np.zeros(1) for _ in range(kernels)]
        for table in tables:
            sums = [np.add.outer(s, part).ravel() for s, part in zip(sums, table, strict=True)]
        return _largest(sums)
    random = np.random.default_rng(seed)
    totals = np.zeros((kernels, RANDOM_ARRANGEMENTS))
    for table in tables:
        totals += table[:, random.integers(0, table.shape[1], RANDOM_ARRANGEMENTS)]
    return _largest(list(totals))


def _largest(sums: list[Floats]) -> Floats:
    largest: Floats = np.maximum.reduce(sums)
    return largest

"""Least squares under constraints: a rising sequence, and coefficients that are not negative.

Both are in scipy, too, of whose 143 MB nothing else is needed (docs/decisions/dependencies.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats

    Mask = NDArray[np.bool_]

# A gradient below this share of its scale is zero: rounding errors. exact: some hundred epsilons.
_ROUNDING = 1e-13
# Changes of the set of positive coefficients per column; one or two are usual.
_MOST_CHANGES = 10


def isotonic(y: Floats) -> Floats:
    """The sequence that never falls and is closest to y, shape (n,).

    Pools adjacent violators (Barlow, Bartholomew, Bremner and Brunk, Statistical Inference under
    Order Restrictions, 1972), in linear time.
    """
    means: list[float] = []
    counts: list[int] = []
    for value in y.tolist():
        mean, count = value, 1
        while means and means[-1] > mean:
            before, number = means.pop(), counts.pop()
            mean = (mean * count + before * number) / (count + number)
            count += number
        means.append(mean)
        counts.append(count)
    return np.repeat(np.asarray(means, dtype=np.float64), counts)


def non_negative(matrix: Floats, y: Floats) -> tuple[Floats, float]:
    """The coefficients >= 0, shape (k,), that make matrix @ coefficients closest to y, and the
    length of what is left. matrix: shape (n, k).

    The active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23).
    """
    norms = np.linalg.norm(matrix, axis=0)
    norms[norms == 0] = 1.0
    units = matrix / norms
    found, positive = np.zeros(norms.size), np.zeros(norms.size, dtype=np.bool_)
    least = _ROUNDING * np.linalg.norm(y)
    for _ in range(_MOST_CHANGES * norms.size):
        gradient = units.T @ (y - units @ found)
        gradient[positive] = -np.inf
        best = int(np.argmax(gradient))
        if not gradient[best] > least:
            break
        positive[best] = True
        found = _moved(units, y, found, positive)
    return found / norms, float(np.linalg.norm(y - units @ found))


def _moved(matrix: Floats, y: Floats, found: Floats, positive: Mask) -> Floats:
    """The solution for the positive columns; those that would become negative leave the set."""
    while True:
        solution = np.zeros_like(found)
        solution[positive] = np.linalg.lstsq(matrix[:, positive], y, rcond=None)[0]
        below = positive & (solution <= 0)
        if not below.any():
            return solution
        step = np.min(found[below] / (found[below] - solution[below]))
        found = found + step * (solution - found)
        positive &= ~(below & (found <= _ROUNDING * np.abs(found).max(initial=0.0)))
        if not positive.any():
            return np.zeros_like(found)

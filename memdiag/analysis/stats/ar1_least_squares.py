"""Least squares under AR(1) noise: columns and target whitened once, subsets fitted from one Gram
matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.noise import autocorrelation

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


class WhitenedFit:
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

    def amounts(self, chosen: Sequence[int]) -> Floats:
        """The same, of the columns as they were given."""
        return np.asarray(self.weights(chosen) / self.scale[np.asarray(chosen)])

    def residual(self, chosen: Sequence[int]) -> Floats:
        """What the chosen columns leave over, whitened, shape (n,)."""
        return np.asarray(self.target - self.columns[:, np.asarray(chosen)] @ self.weights(chosen))

    def rss(self, chosen: Sequence[int]) -> float:
        """Residual square of the chosen columns."""
        return max(self.power - float(self.moment[np.asarray(chosen)] @ self.weights(chosen)), 0.0)

    def gains(self, chosen: Sequence[int], further: Sequence[int]) -> Floats:
        """Fall of the residual square by each further column alone, signed as its weight."""
        base, more = np.asarray(chosen), np.asarray(further)
        cross = self.gram[np.ix_(base, more)]
        solved = np.linalg.lstsq(self.gram[np.ix_(base, base)], cross, rcond=1e-10)[0]
        left = self.moment[more] - solved.T @ self.moment[base]
        own = np.diag(self.gram)[more] - np.einsum("ij,ij->j", cross, solved)
        seen = own > 1e-9
        gain = np.where(seen, left**2 / np.where(seen, own, 1.0), 0.0)
        return np.asarray(np.copysign(gain, left))

    def apart(self, columns: Sequence[int], chosen: Sequence[int]) -> Floats:
        """The parts of columns that the chosen ones do not span, shape (columns, n)."""
        index, own = np.asarray(chosen), np.asarray(columns)
        base = self.gram[np.ix_(index, index)]
        part = np.linalg.lstsq(base, self.gram[np.ix_(index, own)], rcond=1e-10)[0]
        return np.asarray((self.columns[:, own] - self.columns[:, index] @ part).T)


def _whiten(columns: Floats, memory: float) -> Floats:
    """Prais & Winsten 1954."""
    white = np.array(columns, dtype=np.float64)
    white[1:] -= memory * columns[:-1]
    white[0] *= math.sqrt(1 - memory * memory)
    return white


def memory_of(columns: Floats, target: Floats) -> float:
    """AR(1) coefficient of what all columns together leave over, below 1."""
    scaled = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    # The normal equations: many times faster than a fit of the columns themselves.
    weights = np.linalg.lstsq(scaled.T @ scaled, scaled.T @ target, rcond=1e-10)[0]
    rest = target - scaled @ weights
    raw = autocorrelation(rest)
    return min(max(raw + (1 + 3 * raw) / len(rest), 0.0), 0.995)

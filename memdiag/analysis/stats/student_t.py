"""Quantiles of Student's t without scipy, whose import takes longer than most analyses."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

_LARGE = 20  # degrees of freedom from which on the expansion is right to a relative 1e-6
_POINTS = 64  # of Gauss and Legendre's rule
_HALVINGS = 50


@lru_cache(maxsize=1024)
def quantile(freedom: float, probability: float) -> float:
    """The value that a t variable of `freedom` degrees stays below with `probability`.

    freedom: need not be whole, infinite for the normal distribution; less than 1 counts as 1.
    probability: 0.5 up to 0.995. Within a relative 1e-6.
    """
    if freedom >= _LARGE:
        return _expanded(freedom, NormalDist().inv_cdf(probability))
    return _solved(max(freedom, 1.0), probability)


def _expanded(n: float, z: float) -> float:
    """Cornish and Fisher's expansion (Abramowitz and Stegun 1964, 26.7.5)."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / n**power for power, term in enumerate(terms, start=1))


def _solved(n: float, probability: float) -> float:
    """t = sqrt(n) tan(angle), where P(0 < T < t) is the integral of a power of the cosine."""
    at, weight = np.polynomial.legendre.leggauss(_POINTS)
    scale = math.exp(math.lgamma((n + 1) / 2) - math.lgamma(n / 2)) / math.sqrt(math.pi)
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        inner = np.cos(angle * (at + 1) / 2) ** (n - 1)
        below = 0.5 + scale * float(weight @ inner) * angle / 2
        low, high = (angle, high) if below < probability else (low, angle)
    return math.sqrt(n) * math.tan((low + high) / 2)

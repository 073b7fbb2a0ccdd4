"""The median, other quantiles and the mean, faster than by numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats, Ints


def median(values: Floats | Ints | Sequence[float]) -> float:
    """The median of values of shape (n,); NaN if there are none or one of them is NaN.

    As `np.median`, which takes six times as long for 25,000 values: it sorts around three places.
    """
    if not len(values):
        return math.nan
    half = len(values) // 2
    ranked = np.array(values)
    ranked.partition(half)
    upper, most = ranked[half:], np.maximum.reduce
    lower = upper[0] if len(values) % 2 else most(ranked[:half])
    return math.nan if math.isnan(most(upper)) else float(lower + upper[0]) / 2


def mean(values: Floats) -> float:
    """The mean of values of shape (n,), n > 0, equal to `values.mean()`.

    Without its checks, which take three times as long as a hundred values.
    """
    return float(np.add.reduce(values)) / len(values)


def quantile_of(values: Floats, share: float) -> float:
    """The value below which this share of the values is, shape (n,), n > 0; as `np.quantile`."""
    place = share * (len(values) - 1)
    at = int(place)
    after = min(at + 1, len(values) - 1)
    ranked = np.array(values)
    ranked.partition((at, after, len(values) - 1))
    if math.isnan(ranked[-1]):
        return math.nan
    low, high, part = float(ranked[at]), float(ranked[after]), place - at
    step = high - low
    return high - step * (1 - part) if part >= 0.5 else low + step * part  # exact: half way

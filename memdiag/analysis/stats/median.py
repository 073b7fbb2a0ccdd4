"""The median, faster than by numpy."""

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
    ranked = np.partition(values, half)
    upper = ranked[half:]
    lower = upper[0] if len(values) % 2 else ranked[:half].max()
    return math.nan if math.isnan(upper.max()) else float(lower + upper[0]) / 2

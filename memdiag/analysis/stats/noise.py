"""Noise of a series: its standard deviation without its trend and spikes, and its AR(1) memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.median import median, quantile_of

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats

MAD = 1.4826  # exact: standard deviation of normal noise over its median absolute deviation
UNIFORM = 12**-0.5  # exact: standard deviation of a uniform distribution over its width
_QUARTILE = 0.3186  # exact: a quarter of all normal deviates is nearer to 0


def robust_deviation(values: Floats) -> float:
    """Standard deviation, from the median absolute deviation."""
    return MAD * median(np.abs(values - median(values)))


def least_noise(y: Floats) -> float:
    """Robust standard deviation of the noise of one value, from first differences."""
    return robust_deviation(y[1:] - y[:-1]) / math.sqrt(2) if len(y) > 1 else 0.0


def between_spikes(y: Floats) -> float:
    """The same where up to half of the values are spikes: from the quarter of differences that are
    least, of neighbors or of the next but one (a spike at every second value)."""
    quarters = []
    for lag in (1, 2):
        d = y[lag:] - y[:-lag]
        if len(d):
            quarter = quantile_of(np.abs(d - median(d)), 0.25)  # exact: that of _QUARTILE
            quarters.append(quarter)
    return min(quarters, default=0.0) / _QUARTILE / math.sqrt(2)


def autocorrelation(rest: Floats) -> float:
    """AR(1) coefficient of residuals by least squares, biased; 0 without any."""
    power = float(rest[:-1] @ rest[:-1])
    return float(rest[1:] @ rest[:-1]) / power if power > 0 else 0.0


def long_run_factor(memory: float) -> float:
    """Long-run variance of AR(1) noise over the variance of one value."""
    return (1 + memory) / (1 - memory)

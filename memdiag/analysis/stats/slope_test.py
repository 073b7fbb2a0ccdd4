"""Slope tests that are valid for white noise as well as for a random walk."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.median import mean
from memdiag.analysis.stats.noise import autocorrelation
from memdiag.analysis.stats.student_t import quantile

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A fitted slope per axis unit, its standard error, degrees of freedom and AR(1) of noise."""

    slope: float
    error: float
    freedom: int
    memory: float

    @property
    def t(self) -> float:
        """Slope over its standard error."""
        most = math.copysign(1e9, self.slope)  # exact: stands for infinity
        return self.slope / self.error if self.error > 0 else most

    @property
    def p_growth(self) -> float:
        """One-sided p-value of "does not grow", 0..1."""
        return upper_tail(self.t, self.freedom)

    def half_width(self, level: float = 0.975) -> float:  # exact: 95 % on both sides
        """Half width of the two-sided interval whose upper end has probability `level`."""
        return quantile(self.freedom, level) * self.error


def upper_tail(t: float, freedom: int) -> float:
    """P(T > t) of Student's t; Hill's approximation (CACM 396, 1970), exact below 3 degrees."""
    if freedom <= 1:
        return 0.5 - math.atan(t) / math.pi  # exact: Cauchy
    if freedom == 2:
        return 0.5 - t / (2 * math.sqrt(2 + t * t))  # exact: two degrees of freedom
    a = freedom - 0.5  # exact: Hill
    b = 48 * a * a  # exact: Hill
    z2 = a * math.log1p(t * t / freedom)
    z = math.sqrt(z2)
    z += (z2 * z + 3 * z) / b  # exact: Hill
    tail = math.erfc(z / math.sqrt(2)) / 2
    return tail if t >= 0 else 1 - tail


def line(x: Floats, y: Floats) -> tuple[float, float]:
    """Least squares (level at the mean of x, slope); slope 0 where x does not vary."""
    centred = x - mean(x)
    spread = float(centred @ centred)
    slope = float(centred @ y) / spread if spread > 0 else 0.0
    return mean(y), slope


def trend(x: Floats, y: Floats, floor: float) -> Trend:
    """Slope of `y` over `x` with an error that survives autocorrelated noise.

    Perron and Yabu, J. Econometrics 151 (2009) 56-69: feasible GLS with an AR(1) noise whose
    coefficient is set to 1 when it comes within n**-1/2 of it; the t statistic is then close to
    its nominal law for stationary noise and for a random walk alike. The bias of the AR estimate
    under a fitted trend is corrected by Marriott and Pope's (2 + 4 phi) / n. `floor`: least
    standard deviation of the noise. x ascending, at least 2 values.
    """
    n = len(y)
    scale = max(float(x[-1] - x[0]), 1e-300) / max(n - 1, 1)
    u = (x - x[0]) / scale
    level, slope = line(u, y)
    rest = y - level - slope * (u - mean(u))
    memory = _memory(rest, n)
    ys, ones, us = (_without_memory(values, memory) for values in (y, np.ones(n), u))
    a, b, c = float(ones @ ones), float(ones @ us), float(us @ us)
    determinant = max(a * c - b * b, 1e-300)
    p, q = float(ones @ ys), float(us @ ys)
    slope = (a * q - b * p) / determinant
    intercept = (c * p - b * q) / determinant
    rest = ys - intercept * ones - slope * us
    freedom = max(n - 2, 1)
    variance = max(float(rest @ rest) / freedom, (floor * (1 - memory)) ** 2, 1e-300)
    error = math.sqrt(variance * a / determinant)
    return Trend(slope=slope / scale, error=error / scale, freedom=freedom, memory=memory)


def _without_memory(values: Floats, memory: float) -> Floats:
    """What AR(1) noise leaves of the values if each is compared with the one before it."""
    new: Floats = values.copy()
    new[1:] -= memory * values[:-1]
    return new


def _memory(rest: Floats, n: int) -> float:
    """AR(1) coefficient of residuals, bias-corrected and truncated to 1 (Perron-Yabu)."""
    memory = autocorrelation(rest)
    memory += (2 + 4 * memory) / n  # exact: Marriott and Pope
    near = n**-0.5  # exact: Perron and Yabu
    return 1.0 if memory > 1 - near else max(memory, 0.0)

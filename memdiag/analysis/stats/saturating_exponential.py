"""Does a climb run into a ceiling, or slow down for ever? Curves against a straight line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """y = ceiling - height exp(-(x - x0) / time), fitted by least squares over a grid of times.

    misfit: residual variance over that of the noise. evidence: BIC of a line minus BIC of this
    curve. left: growth still to come, in the unit of y. slowed: the slope at the end over that at
    the start, exp(-run / time).
    creep: slope that remains beside the curve (fitted jointly), and its standard error.
    """

    misfit: float
    evidence: float
    left: float
    slowed: float
    creep: float
    creep_error: float


def saturation(x: Floats, y: Floats, noise: float, fewest: int) -> Saturation | None:
    """Fit a climb; None of fewer than `fewest` samples, and where x does not ascend."""
    n = len(x)
    if n < fewest or not x[-1] > x[0]:
        return None
    u = (x - x[0]) / (x[-1] - x[0])
    time, rss, height = _best(u, y)
    least = n * noise * noise
    line = np.stack([np.ones(n), u], axis=1)
    line_rss = _residual(line, y)[0]
    evidence = n * math.log((line_rss + least) / (rss + least)) - math.log(n)
    creep, error = _creep(u, y, time, noise)
    run = float(x[-1] - x[0])
    return Saturation(
        misfit=rss / max(n - 3, 1) / max(noise * noise, 1e-300),  # exact: three parameters
        evidence=evidence,
        left=height * math.exp(-1.0 / time),
        slowed=math.exp(-1.0 / time),
        creep=creep / run,
        creep_error=error / run,
    )


_TIMES = 14  # exact: a search, zoomed in three times, is right to three digits
_PASSES = 3  # exact: see above
_EVENLY = np.linspace(0, 1, _TIMES)


def _best(u: Floats, y: Floats) -> tuple[float, float, float]:
    """(time constant, residual sum of squares, height) of the best curve, by zooming in."""
    low, high = 1 / len(u), 2.0
    for _ in range(_PASSES):
        times = low * (high / low) ** _EVENLY
        bent = -np.exp(-u[None, :] / times[:, None])
        bent_rest = bent - bent.mean(axis=1, keepdims=True)
        rest = y - y.mean()
        power = np.maximum((bent_rest**2).sum(axis=1), 1e-300)
        heights = bent_rest @ rest / power
        rss = np.maximum(rest @ rest - heights**2 * power, 0.0)
        best = int(np.argmin(rss))
        low, high = float(times[max(best - 1, 0)]), float(times[min(best + 1, _TIMES - 1)])
    return float(times[best]), float(rss[best]), float(heights[best])


def _residual(design: Floats, y: Floats) -> tuple[float, Floats]:
    normal = design.T @ design
    coefficients = np.linalg.lstsq(normal, design.T @ y, rcond=None)[0]
    rest = y - design @ coefficients
    return float(rest @ rest), coefficients


def _creep(u: Floats, y: Floats, time: float, noise: float) -> tuple[float, float]:
    """Slope beside the curve and its standard error, per length of the climb."""
    n = len(u)
    design = np.stack([np.ones(n), -np.exp(-u / time), u], axis=1)
    rss, coefficients = _residual(design, y)
    variance = max(rss / max(n - 4, 1), noise * noise)  # exact: four parameters
    inverse = np.linalg.pinv(design.T @ design)
    return float(coefficients[2]), math.sqrt(variance * float(inverse[2, 2]))


_DECADES = np.logspace(-3, 0.5, 40)  # exact: a search, to a fifth


def endless(x: Floats, y: Floats, noise: float, fewest: int) -> float:
    """Evidence that a climb slows down for ever, and has no straight end.

    BIC of a saturating exponential beside a line, minus BIC of the better one of
    y = a + b log(1 + (x - x0) / time) and y = a + b sqrt(1 + (x - x0) / time), all by least squares
    over a grid of times. -inf of fewer than `fewest` samples, and where x does not ascend.
    """
    n = len(x)
    if n < fewest or not x[-1] > x[0]:
        return -math.inf
    u, least = (x - x[0]) / (x[-1] - x[0]), n * noise * noise
    later = 1 + u[None, :] / _DECADES[:, None]
    curved = min(_least_rss(shape, y, [np.ones(n)]) for shape in (np.log(later), np.sqrt(later)))
    bent = -np.exp(-u[None, :] / _DECADES[:, None])
    straight = _least_rss(bent, y, [np.ones(n), u])
    return n * math.log((straight + least) / (curved + least)) + math.log(n)


def _least_rss(shapes: Floats, y: Floats, beside: list[Floats]) -> float:
    """Residual sum of squares of the best of some shapes, shape (k, n), which rises; with a sum of
    what is beside it."""
    basis = np.linalg.qr(np.stack(beside, axis=1))[0]
    rest = y - basis @ (basis.T @ y)
    bent = shapes - (shapes @ basis) @ basis.T
    power = np.maximum((bent**2).sum(axis=1), 1e-300)
    heights = np.maximum(bent @ rest / power, 0.0)
    return float((rest @ rest - heights**2 * power).min())

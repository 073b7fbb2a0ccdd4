"""A few teeth of a sawtooth: do their levels rise from one to the next?

Three or four floors are too few for a test of their own. But each tooth is a line through many
readings, all of the same pace, so that their levels are known far better than their floors:

    reading = level of the tooth + pace * time since it began + noise
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.median import median
from memdiag.analysis.stats.noise import long_run_factor

if TYPE_CHECKING:
    from memdiag.analysis.policy import Policy
    from memdiag.values.measurements import Floats, Ints

RESET = 0.3  # exact: sqrt(1 / 12), rounded
"""Standard deviation of where a tooth began between two samples, in samples."""


def climb(x: Floats, y: Floats, drops: Ints, policy: Policy) -> float:
    """Slope of the levels of the teeth behind the first drop over its standard error; 0 of too few
    teeth.

    x, y: readings, shape (n,); drops: the last reading of each tooth but the last.
    """
    teeth = [
        (x[a:b] - x[a], y[a:b], float(x[a]))
        for a, b in pairwise([*(drops + 1), len(y)])
        if b - a >= policy.common.fewest
    ]
    if len(teeth) < policy.common.fewest:
        return 0.0
    pace = within([(since, value) for since, value, _ in teeth])
    rests = [value - pace * since for since, value, _ in teeth]
    noise = long_run(rests, policy)
    reset = RESET * abs(pace) * median(np.diff(x))
    error = np.array([math.hypot(noise / math.sqrt(len(rest)), reset) for rest in rests])
    return _slope_errors(
        np.array([begin for _, _, begin in teeth]),
        np.array([float(rest.mean()) for rest in rests]),
        np.maximum(error, 1e-12 * float(np.abs(y).max()) + 1e-300),  # exact: rounding of doubles
    )


def long_run(rests: list[Floats], policy: Policy) -> float:
    """Long-run standard deviation of what teeth of one pace leave over: AR(1) about each level."""
    noise = np.concatenate([rest - rest.mean() for rest in rests])
    power = float(noise @ noise)
    memory = float(noise[1:] @ noise[:-1]) / power if power > 0 else 0.0
    memory = min(max(memory, 0.0), policy.segmentation.memory)
    return float(noise.std()) * math.sqrt(long_run_factor(memory))


def within(teeth: list[tuple[Floats, Floats]]) -> float:
    """The pace that all teeth, (time since it began, readings) each, rise at: least squares."""
    moment = sum(float((t - t.mean()) @ (v - v.mean())) for t, v in teeth)
    spread = sum(float((t - t.mean()) @ (t - t.mean())) for t, _ in teeth)
    return moment / spread if spread > 0 else 0.0


def _slope_errors(at: Floats, level: Floats, error: Floats) -> float:
    """Weighted slope over its standard error, widened where the levels do not lie on a line."""
    weight = 1 / error**2
    middle = float(weight @ at / weight.sum())
    spread = float(weight @ (at - middle) ** 2)
    if spread <= 0:
        return 0.0
    slope = float(weight @ ((at - middle) * level)) / spread
    mean = float(weight @ level / weight.sum())
    rest = level - mean - slope * (at - middle)
    misfit = float(weight @ rest**2) / max(len(at) - 2, 1)
    return slope * math.sqrt(spread / max(misfit, 1.0))

"""What people script instead: each takes steps and readings and says whether it is a leak."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rule = Callable[[Floats, Floats], bool]
MOST_POINTS = 300  # the quadratic peers get a thinned series


def _ols(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Slope, its standard error, R2."""
    u = x - x.mean()
    spread, total = float(u @ u), float(((y - y.mean()) ** 2).sum())
    slope = float(u @ y) / spread if spread > 0 else 0.0
    rest = y - y.mean() - slope * u
    error = math.sqrt(max(float(rest @ rest), 1e-18) / max(len(y) - 2, 1) / max(spread, 1e-18))
    return slope, error, 1 - float(rest @ rest) / total if total > 0 else 0.0


def ols(x: Floats, y: Floats) -> bool:
    slope, error, _ = _ols(x, y)
    return slope > 2.6 * error


def r2_rule(x: Floats, y: Floats) -> bool:
    slope, _, r2 = _ols(x, y)
    return slope > 0 and r2 >= 0.7


def predict_linear(x: Floats, y: Floats) -> bool:
    """A line through the last fifth passes +10 % within another run."""
    k = max(4, len(y) // 5)
    return _ols(x[-k:], y[-k:])[0] * float(x[-1] - x[0]) > 0.10 * float(np.median(y[-k:]))


def _thin(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    if len(y) <= MOST_POINTS:
        return x, y
    index = np.linspace(0, len(y) - 1, MOST_POINTS).round().astype(int)
    return x[index], y[index]


def _mann_kendall() -> Rule:
    import pymannkendall

    def rule(x: Floats, y: Floats) -> bool:
        found = pymannkendall.original_test(_thin(x, y)[1], alpha=0.01)
        return bool(found.trend == "increasing")

    return rule


def _ruptures() -> Rule:
    import ruptures

    def rule(x: Floats, y: Floats) -> bool:
        x, y = _thin(x, y)
        if len(y) < 8:
            return ols(x, y)
        scale = float(np.std(np.diff(y))) or 1.0
        signal = np.column_stack([y / scale, np.ones_like(x), (x - x[0]) / (x[-1] - x[0])])
        search = ruptures.BottomUp(model="linear", min_size=4, jump=2).fit(signal)
        ends = search.predict(pen=3 * math.log(len(y)))
        start = ends[-2] if len(ends) > 1 else 0
        return ols(x[start:], y[start:])

    return rule


def _pwlf() -> Rule:
    import pwlf

    def rule(x: Floats, y: Floats) -> bool:
        x, y = _thin(x, y)
        if len(y) < 8:
            return ols(x, y)
        scale = float(np.median(np.abs(y))) or 1.0
        model = pwlf.PiecewiseLinFit(x, y / scale, seed=0)
        start = float(model.fitfast(3)[-2])
        tail = x >= start
        return ols(x[tail], y[tail]) if tail.sum() >= 4 else False

    return rule


def peers() -> dict[str, Rule]:
    """The rules that can run here: the libraries are optional."""
    found: dict[str, Rule] = {
        "OLS slope, t > 2.6": ols,
        "slope > 0 and R2 >= .7": r2_rule,
        "predict_linear, last fifth": predict_linear,
    }
    for name, build in (
        ("pymannkendall, p < .01", _mann_kendall),
        ("ruptures, last segment", _ruptures),
        ("pwlf, last segment", _pwlf),
    ):
        try:
            found[name] = build()
        except ImportError:
            continue
    return found

"""What the quantiles of Student's t promise."""

from __future__ import annotations

import math

import pytest
from scipy.special import stdtrit

from memdiag.analysis.stats.student_t import quantile


@pytest.mark.parametrize("freedom", [1, 1.5, 2, 3.7, 8, 19.9, 20, 31, 1000, math.inf])
@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.995])
def test_quantiles_agree_with_scipys(freedom: float, probability: float) -> None:
    known = 1.959963984540054 if (freedom, probability) == (math.inf, 0.975) else None
    expected = stdtrit(freedom, probability) if known is None else known
    assert quantile(freedom, probability) == pytest.approx(expected, rel=1e-6)

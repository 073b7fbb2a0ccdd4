"""Growth whose rate fell several times before it became constant."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def series(rates: list[float]) -> Series:
    """Growth in 160 readings, in as many stretches of one rate as there are rates."""
    each = np.repeat(rates, 160 // len(rates))
    return every(50, noisy(1e9 + 2e6 * np.cumsum(each), 0.0005, 1))


def test_a_hyperbola_that_looks_straight_at_its_end_is_no_leak() -> None:
    """A cache for which every entry is harder to come by: y = x / (x + half)."""
    found = asked("slowed_before", series([8, 5, 3, 2, 1.2, 0.9, 0.8, 0.8]))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param([14, 6, 5, 4, 3.4, 4.2, 2.8, 3.2], id="before a line of six eighths"),
        pytest.param([12, 9, 6, 5, 3.6, 4.6, 3.4, 3.8, 3, 3.2], id="at uneven rates"),
    ],
)
def test_growth_that_slowed_down_early_and_still_does_is_no_leak(rates: list[float]) -> None:
    """Its rate is too uneven for a curve to fit it."""
    found = asked("slowed_before", series(rates))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param([8, 8, 8, 1, 1, 1, 1, 1], id="once, after a ramp"),
        pytest.param([8, 3, 1, 1, 1, 1, 1, 1, 1, 1], id="long ago"),
        pytest.param([64, 64, 16, 16, 4, 4] + [1] * 10, id="a curve that has ended"),
    ],
)
def test_a_leak_beside_a_warm_up_is_one(rates: list[float]) -> None:
    found = asked("slowed_before", series(rates))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

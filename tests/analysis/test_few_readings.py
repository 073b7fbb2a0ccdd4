"""Logs of ten to thirty readings, as people paste them: what one of these may decide, and not."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Verdict

MB = 1e6


def even(n: int, seed: int) -> np.ndarray:
    """A leak of 0.35 MB a reading of a process of 40 MB."""
    noise = np.random.default_rng([8, seed]).normal(0, 0.03 * MB, n)
    return 40 * MB + 0.35 * MB * np.arange(n) + noise


@pytest.mark.parametrize("seed", range(4))
def test_one_last_reading_that_is_a_little_lower_makes_no_doubt_of_a_leak(seed: int) -> None:
    x, y = 100.0 * np.arange(29), even(29, seed)
    y[:4] = y[4] - MB * np.array([9.2, 3.3, 3.0, 1.4])  # what the first calls load
    y[-1] = y[-2] - 0.2 * MB
    assert judge(series_of(y, x=x, kind=AxisKind.REQUEST)).verdict is Verdict.LEAK


def test_climbs_that_end_in_a_slow_one_are_no_leak() -> None:
    """Pieces that each climb, the last of them at a quarter of what the line through all does."""
    mb = [84, 85, 90, 95, 99, 107, 109, 117, 119, 119, 126, 127, 127, 130, 131, 131, 131, 131, 132]
    mb += [139, 141, 141, 145, 145, 151, 152, 152, 152, 152, 153, 154, 154, 154]
    x = 50.0 * np.arange(1, len(mb) + 1)
    found = judge(series_of(MB * np.array(mb), x=x, kind=AxisKind.REQUEST))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_growth_that_speeds_up_over_gaps_is_a_leak() -> None:
    x = 1000.0 * np.array(
        [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 420, 430, 440, 450, 460, 470, 920]
    )
    noise = np.random.default_rng(3).normal(0, 2 * MB, len(x))
    y = 500 * MB + 300.0 * x + 3e-4 * x**2 + noise
    assert judge(series_of(y, x=x, kind=AxisKind.REQUEST)).verdict is Verdict.LEAK


def test_the_rate_of_a_leak_after_a_warm_up_is_not_that_of_its_end() -> None:
    """The end of the warm-up may reach into the regime that is taken for the leak's."""
    inside = total = 0
    for seed in range(60):
        rng = np.random.default_rng([9, seed])
        n = int(rng.choice([200, 500, 1000]))
        u, k, ends = np.arange(n) / n, np.arange(n), rng.uniform(0.1, 0.35)
        climb = np.exp(-4 * u / ends) if seed % 2 else np.maximum(1 - u / ends, 0)
        rate = 8000 * MB * rng.uniform(0.2, 1.0) / n
        y = 8000 * MB - 3000 * MB * climb + rate * k + rng.normal(0, 25 * MB, n)
        found = judge(series_of(y, x=10.0 * k))
        if found.verdict is Verdict.LEAK:
            growth = found.series[0].growth_per_x
            assert growth is not None
            inside += growth.low <= rate / 10 <= growth.high
            total += 1
    assert total > 50
    assert inside >= 0.9 * total

"""Logs of ten to thirty readings, as people paste them: what one of these may decide, and not."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.measurements import AxisKind, Role
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


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("role", [Role.RESIDENT, Role.IN_USE])
def test_ten_whole_operations_that_each_keep_as_much_are_a_leak(role: Role, seed: int) -> None:
    """However the rounding of their readings cuts the line into regimes."""
    rng = np.random.default_rng([2, seed])
    level, kept = rng.choice([100 * MB, 500 * MB, 2000 * MB]), rng.choice([2 * MB, 20 * MB])
    y = np.round((level + kept * np.arange(10)) / 4096) * 4096
    assert judge(series_of(y, role=role, kind=AxisKind.INDEX)).verdict is Verdict.LEAK


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


def test_a_rare_metric_is_not_judged_by_what_precedes_and_follows_the_steps() -> None:
    """On the axis of time, where it has too few steps."""
    at_s = np.arange(80.0)
    x = np.where(at_s < 12, np.nan, np.minimum(np.floor(at_s - 12), 50))
    y = np.where(at_s < 12, 5 * MB * at_s, 60 * MB + 0.01 * MB * (at_s % 3))
    y[at_s > 65] = 300 * MB
    y[(at_s % 4 > 1) & (at_s > 12)] = np.nan
    x = np.floor(x / 2)
    (found,) = judge(series_of(y, x, at_s=at_s)).series
    assert found.axis.kind is AxisKind.SECONDS
    assert found.verdict is Verdict.STABLE
    assert found.first_x == 12.0
    assert found.last_x <= 65.0


@pytest.mark.parametrize("seed", range(1, 7))
def test_noisy_readings_that_are_level_from_the_first_on_are_no_warm_up(seed: int) -> None:
    """One of the first that is low by chance does not end a warm-up at step 0."""
    y = MB * (100 + np.random.default_rng(seed).uniform(-1, 1, size=30))
    y[1] -= 2.5 * MB
    assert judge(series_of(y)).verdict is Verdict.STABLE

"""What a forecast promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.analysis.forecasting.projection import (
    grow_on,
    limit_hits,
    positions,
    stay,
)
from memdiag.values.findings import Finding
from memdiag.values.measurements import Limit, Role

GB = 1e9
BURN_X = np.array([0, 10, 15, 20, 25, 30, 35, 40, 49.0])
BURN_Y = np.array([3864, 4184, 4184, 5624, 7096, 8536, 10008, 11480, 14136]) * 1e6
CARD = Limit(name="GPU 0", value_bytes=16_000_000_000, roles=frozenset({Role.DEVICE}))


def ar1(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    noise = np.empty(n)
    noise[0] = rng.normal()
    for i in range(1, n):
        noise[i] = phi * noise[i - 1] + rng.normal() * math.sqrt(1 - phi * phi)
    return noise


@pytest.mark.parametrize("onset", [1, 2, 3])
def test_the_hybrid_run_needs_26_to_32_gb_at_step_100(onset: int) -> None:
    forecast = grow_on(BURN_X[onset:], BURN_Y[onset:]).at(100)
    assert 26 * GB <= forecast.value <= 32 * GB
    assert forecast.low < forecast.value < forecast.high


@pytest.mark.parametrize("onset", [1, 2, 3])
def test_the_hybrid_run_fills_16_gb_at_about_step_56(onset: int) -> None:
    (hit,) = limit_hits(
        grow_on(BURN_X[onset:], BURN_Y[onset:]), [CARD], Role.DEVICE, run=49, seconds_per_x=2.0
    )
    assert 54 <= hit.at_x.value <= 58
    assert hit.at_x.low <= hit.at_x.value <= hit.at_x.high
    assert hit.in_s == pytest.approx(2.0 * (hit.at_x.value - 49))


def share_inside(phi: float, n: int, runs: int = 200) -> float:
    """How often a reading as far ahead as the run is long lies in its interval."""
    rng = np.random.default_rng([n, int(10 * phi)])
    inside = 0
    for _ in range(runs):
        y = 0.1 * np.arange(2 * n) + ar1(rng, 2 * n, phi)
        forecast = grow_on(np.arange(n, dtype=float), y[:n]).at(2 * n - 1)
        inside += forecast.low <= y[-1] <= forecast.high
    return inside / runs


@pytest.mark.parametrize(("phi", "n"), [(0.0, 10), (0.0, 100), (0.6, 40), (0.9, 200)])
def test_95_percent_of_later_readings_lie_inside_the_interval(phi: float, n: int) -> None:
    assert share_inside(phi, n) >= 0.9


def test_short_series_of_noise_with_a_memory_have_intervals_wide_enough() -> None:
    assert np.mean([share_inside(phi, n) for phi in (0.8, 0.9) for n in (15, 20, 40)]) >= 0.92


def test_growth_that_may_stop_reaches_down_to_todays_value_and_perhaps_no_limit() -> None:
    x = np.arange(10, 80, 10.0)
    y = np.array([5552, 7159, 8851, 10515, 12227, 13919, 15736]) * 1e6
    doubtful = grow_on(x, y, may_stop=True)
    assert doubtful.at(200).low <= y[-1] <= doubtful.at(200).value
    hit = doubtful.reaches(32 * GB)
    assert hit is not None
    assert hit.high == math.inf
    assert 150 < hit.value < 180


def test_memory_is_never_expected_below_zero() -> None:
    x = np.array([10.0, 11, 12, 13])
    falling = grow_on(x, np.array([9.0, 7.0, 8.0, 5.0]) * GB).at(1000)
    assert (falling.value, falling.low) == (0.0, 0.0)
    assert falling.high > 0
    below = grow_on(x, np.array([-9.0, -7.0, -8.0, -9.0])).at(1000)
    assert below.low < -9


def test_a_plateau_stays_within_its_range_and_hits_nothing() -> None:
    y = np.array([17.69, 17.44, 17.38, 17.23, 17.05, 17.03]) * GB
    projection = stay(np.arange(6.0), y)
    forecast = projection.at(1e6)
    assert forecast.low <= 17.05 * GB <= forecast.value <= 17.69 * GB <= forecast.high + 0.1 * GB
    assert projection.reaches(32 * GB) is None


def test_a_limit_already_passed_is_hit_now() -> None:
    (hit,) = limit_hits(
        grow_on(BURN_X, 2 * BURN_Y), [CARD], Role.DEVICE, run=49, seconds_per_x=None
    )
    assert hit.at_x.value == 49
    assert hit.in_s is None


def test_a_limit_of_another_kind_of_memory_is_no_limit() -> None:
    assert limit_hits(grow_on(BURN_X, BURN_Y), [CARD], Role.RESIDENT, run=49, seconds_per_x=1) == ()


def test_a_falling_series_never_reaches_a_limit() -> None:
    assert grow_on(BURN_X, BURN_Y[::-1].copy()).reaches(1e12) is None


def test_a_slope_lost_in_noise_has_no_last_date() -> None:
    rng = np.random.default_rng(1)
    projection = grow_on(np.arange(20.0), 10 + 0.001 * np.arange(20) + rng.normal(0, 1, 20))
    hit = projection.reaches(50.0)
    assert hit is None or hit.high == math.inf


def test_positions_are_the_planned_else_a_round_one_ahead() -> None:
    assert positions(0, 49) == (100,)
    assert positions(0, 240) == (500,)
    assert positions(0, 49, planned_x=5000) == (5000,)
    assert positions(0, 49, planned_x=30) == (100,)
    assert positions(7, 7) == ()


def test_forecasts_come_in_the_order_of_their_positions() -> None:
    values = [grow_on(BURN_X, BURN_Y).at(x).value for x in (60, 70, 80)]
    assert values == sorted(values)


def test_one_position_makes_no_line() -> None:
    with pytest.raises(ValueError, match="two positions"):
        grow_on(np.array([3.0, 3.0]), np.array([1.0, 2.0]))


def test_a_stop_of_an_hour_is_no_part_of_the_pace() -> None:
    x = np.arange(400.0)
    clock = 0.1 * x + np.where(x >= 150, 3600.0, 0.0)
    random = np.random.default_rng(3)
    leak = 1e9 + 2e6 * x + random.normal(0, 1e5, x.size)
    shuffled = random.permutation(x.size)
    found = judge(series_of(leak[shuffled], x[shuffled], at_s=clock[shuffled])).series[0]
    assert _pace(found) == pytest.approx(0.1, rel=0.01)


def test_slow_evaluations_are_part_of_the_pace() -> None:
    x = np.arange(400.0)
    clock = 0.1 * x + 30.0 * (x // 100)
    found = judge(series_of(1e9 + 2e6 * x, at_s=clock)).series[0]
    assert _pace(found) == pytest.approx(0.1 + 90 / 399)


def _pace(found: Finding) -> float:
    """Seconds per step, as the two rates have it."""
    assert found.growth_per_x is not None
    assert found.growth_per_s is not None
    return found.growth_per_x.value / found.growth_per_s.value

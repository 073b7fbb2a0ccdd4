"""Warm-ups of which a recording shows the beginning alone, and growth that only seems to pause."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Verdict

MB = 1e6


def noisy(y: np.ndarray, seed: int, share: float = 0.001) -> np.ndarray:
    return y + np.random.default_rng([7, seed]).normal(0, share * float(np.median(y)), len(y))


@pytest.mark.parametrize("run_times", [1.0, 1.5, 2.0])
def test_a_saturating_climb_is_no_leak_however_far_its_ceiling(run_times: float) -> None:
    u = np.arange(600) / 600
    for seed in range(4):
        y = noisy(2000 * MB + 6000 * MB * (1 - np.exp(-run_times * u)), seed)
        assert judge(series_of(y, x=10.0 * np.arange(600))).verdict is Verdict.INCONCLUSIVE


def test_a_leak_that_goes_on_beside_a_saturating_climb_is_found() -> None:
    u = np.arange(600) / 600
    y = noisy(2000 * MB + 3000 * MB * (1 - np.exp(-8 * u)) + 3000 * MB * u, 1)
    assert judge(series_of(y, x=10.0 * np.arange(600))).verdict is Verdict.LEAK


def test_epochs_that_add_less_each_time_are_no_leak() -> None:
    y = 6000 * MB + MB * np.cumsum([0, 128, 108, 88, 71])
    assert judge(series_of(y, kind=AxisKind.EPOCH)).verdict is Verdict.INCONCLUSIVE
    even = 6000 * MB + MB * np.cumsum([0, *[100] * 9])
    assert judge(series_of(even, kind=AxisKind.EPOCH)).verdict is Verdict.LEAK


def test_a_card_that_idles_before_the_program_loads_has_not_settled() -> None:
    at_s = np.arange(128.0)
    y = noisy(500 * MB + 150 * MB * np.maximum(at_s - 30, 0), 3)
    found = judge(series_of(y, x=at_s, kind=AxisKind.SECONDS))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_growth_under_a_days_waves_is_not_over_while_one_comes_down() -> None:
    at_s = np.arange(1000.0)
    day = 2000 * MB * np.sin(2 * np.pi * at_s / 260)
    y = noisy(12_000 * MB + 25 * MB * at_s + day, 4)[:870]
    found = judge(series_of(y, x=86400 / 260 * at_s[:870], kind=AxisKind.SECONDS))
    assert found.verdict in {Verdict.LEAK, Verdict.INCONCLUSIVE}


def test_stairs_that_ended_before_the_last_third_are_no_leak() -> None:
    y = np.full(2500, 36_000 * MB)
    for at in np.linspace(250, 1400, 8):
        y[int(at) :] += 550 * MB
    y = noisy(y, 5, share=3e-4)
    y[np.random.default_rng(9).integers(0, 2500, 9)] -= 250 * MB
    assert judge(series_of(y, x=100.0 * np.arange(2500))).verdict is Verdict.WARMUP

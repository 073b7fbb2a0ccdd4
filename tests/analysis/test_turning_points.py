"""Slow waves, as of the day's load: bounded where they return, growth where they rise."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.analysis.stats.turning_points import turns, waves
from memdiag.values.verdict import Verdict

STABLE_OR_WARMUP = {Verdict.STABLE, Verdict.WARMUP}


def _verdict(rise: float, seed: int, cycles: float = 6.3) -> Verdict:
    """Of 800 readings in waves of 2 % of the level, that rise by so many heights of a wave."""
    random, at = np.random.default_rng(seed), np.linspace(0, 1, 800)
    height = 160e6
    wave = height / 2 * np.sin(2 * np.pi * (cycles * at + random.uniform()))
    y = 8e9 + wave + random.normal(0, 0.015 * height, 800) + rise * height * at
    return judge(series_of(y)).series[0].verdict


@pytest.mark.parametrize("seed", range(6))
def test_waves_that_return_are_bounded(seed: int) -> None:
    assert _verdict(0.0, seed) in STABLE_OR_WARMUP


@pytest.mark.parametrize("rise", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_waves_that_rise_are_never_called_stable(rise: float, seed: int) -> None:
    assert _verdict(rise, seed) not in STABLE_OR_WARMUP


@pytest.mark.parametrize("seed", range(6))
def test_a_leak_under_waves_is_found(seed: int) -> None:
    assert _verdict(1.0, seed) is Verdict.LEAK


@pytest.mark.parametrize("seed", range(6))
def test_a_warm_up_in_two_parts_under_waves_is_no_leak(seed: int) -> None:
    random, at = np.random.default_rng(seed), np.linspace(0, 1, 2500)
    wave = 80e6 * np.sin(2 * np.pi * (13 * at + random.uniform()))
    parts = np.minimum(at / 0.1, 1) + np.clip((at - 0.4) / 0.1, 0, 1)
    y = 8e9 + wave + 160e6 * parts + random.normal(0, 2.4e6, 2500)
    assert judge(series_of(y)).series[0].verdict is not Verdict.LEAK


def test_turning_points_are_those_that_were_turned_back_from() -> None:
    y = np.array([0.0, 4, 10, 6, 1, 0, 5, 9, 8, 2, 6.0])
    assert turns(y, 5.0) == ([2, 7], [5])


def test_smaller_turns_than_noise_are_none() -> None:
    assert turns(np.array([0.0, 1, 0, 1, 0]), 2.0) == ([], [])


def test_rising_waves_have_a_height_a_rise_and_a_small_p() -> None:
    x = np.arange(600.0)
    found = waves(x, np.sin(2 * np.pi * x / 100) + x / 200, 0.1, 0.5)
    assert found is not None
    assert found.height == pytest.approx(2, rel=0.05)
    assert found.rise == pytest.approx(3, rel=0.05)
    assert found.p_rise < 1e-4


def test_what_does_not_move_has_no_waves() -> None:
    assert waves(np.arange(50.0), np.full(50, 1e9), 0.0, 0.5) is None

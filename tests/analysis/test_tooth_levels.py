"""Three or four teeth of a sawtooth: whether what is left rises from one to the next."""

from __future__ import annotations

import numpy as np
from memory_series import judge, series_of

from memdiag.analysis.policy import DEFAULT
from memdiag.analysis.preprocessing.tooth_levels import climb
from memdiag.values.verdict import Verdict

STABLE_OR_WARMUP = {Verdict.STABLE, Verdict.WARMUP}


def teeth(rise: float, seed: int = 0) -> np.ndarray:
    """Four and a half teeth of 1.1 GB on 17 GB, each leaving `rise` more than the last."""
    k = np.arange(540)
    noise = np.random.default_rng(seed).normal(0, 1e7, len(k))
    return 17e9 + 1.1e9 * ((k + 0.5) % 120) / 120 + rise * k / 120 + noise


def drops(y: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.diff(y) < -5e8)


def test_teeth_that_leave_more_each_time_leak() -> None:
    assert judge(series_of(teeth(4e7))).verdict is Verdict.LEAK


def test_teeth_that_leave_nothing_are_bounded() -> None:
    assert all(judge(series_of(teeth(0.0, seed))).verdict in STABLE_OR_WARMUP for seed in range(8))


def test_the_climb_is_counted_in_standard_errors() -> None:
    x = np.arange(540.0)
    still = [climb(x, y, drops(y), DEFAULT) for y in (teeth(0.0, seed) for seed in range(40))]
    assert np.abs(still).max() < 4
    rising = teeth(4e7)
    assert climb(x, rising, drops(rising), DEFAULT) > 8


def test_fewer_than_three_teeth_tell_nothing() -> None:
    y = teeth(4e7)[:300]
    assert climb(np.arange(300.0), y, drops(y), DEFAULT) == 0.0


def test_teeth_without_noise_are_told_without_a_warning() -> None:
    k = np.arange(48.0)
    assert abs(climb(k, 1e9 + 1e8 * (k % 12), np.array([11, 23, 35]), DEFAULT)) < 1

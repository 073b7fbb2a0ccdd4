"""Growth that rests: where a recording ends in a rest, it may be one of those it had before."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Verdict

MB = 1e6
STABLE_OR_WARMUP = {Verdict.STABLE, Verdict.WARMUP}


def days(growth: float, seed: int) -> np.ndarray:
    """Memory under traffic that comes by day, read every two minutes: with a leak, or none."""
    k = np.arange(3000)
    load = np.maximum(0, np.sin(2 * np.pi * k / 680)) + 0.2
    noise = np.random.default_rng([10, seed]).normal(0, 20 * MB, k.size)
    return 8000 * MB + 2000 * MB * load + growth * np.cumsum(load) / load.sum() + noise


@pytest.mark.parametrize("end", [1900, 2260, 2500, 2680])
def test_a_night_or_crest_of_waves_that_rise_is_no_plateau(end: int) -> None:
    at_s = 120.0 * np.arange(end)
    found = judge(series_of(days(1500 * MB, 1)[:end], x=at_s, kind=AxisKind.SECONDS))
    assert found.verdict not in STABLE_OR_WARMUP
    flat = judge(series_of(days(0.0, 1)[:end], x=at_s, kind=AxisKind.SECONDS))
    assert flat.verdict is not Verdict.LEAK


@pytest.mark.parametrize(
    "steps_at",
    [
        (43, 49, 105, 118, 132, 161, 174, 307, 315),
        (10, 67, 68, 89, 94, 144, 194, 208, 321),
        (21, 62, 90, 253, 289, 291, 314, 320, 332),
    ],
)
def test_a_rest_no_longer_than_those_before_it_is_no_plateau(steps_at: tuple[int, ...]) -> None:
    """Uneven growth: 0.4 GB now and then, with rests of up to a third of the run."""
    y = np.full(700, 10_000 * MB)
    for at in steps_at:
        y[at:] += 400 * MB * (1 - np.exp(-np.arange(700 - at) / 8))
    y += np.random.default_rng(11).normal(0, 15 * MB, 700)
    x = 60.0 * np.arange(700)
    assert judge(series_of(y[:400], x=x[:400])).verdict not in STABLE_OR_WARMUP
    assert judge(series_of(y, x=x)).verdict is Verdict.WARMUP


def test_teeth_that_stand_higher_after_a_load_are_a_warm_up() -> None:
    """Their middles climb over the whole run, and not since the load."""
    k = np.arange(1500)
    for seed in range(4):
        rng = np.random.default_rng([13, seed])
        load = 3000 * MB * np.minimum(1, k / 300)
        teeth = 900 * MB * ((k / 37 + rng.uniform()) % 1) + 200 * MB * ((k / 6.3) % 1)
        y = 1500 * MB + load + teeth + rng.normal(0, 30 * MB, k.size)
        assert judge(series_of(y)).verdict is Verdict.WARMUP


def test_one_step_amid_noise_is_no_line() -> None:
    called = []
    for seed in range(12):
        rng = np.random.default_rng([14, seed])
        y = 4500 * MB + 500 * MB * (np.arange(60) >= 25) + rng.normal(0, 220 * MB, 60)
        called.append(judge(series_of(y, x=100.0 * np.arange(60))).verdict)
    assert Verdict.LEAK not in called


def test_a_tread_of_stairs_is_no_plateau_before_growth() -> None:
    """Shapes that are compiled one after the other, each later than the one before."""
    y = np.full(300, 11_000 * MB)
    for at in (4, 8, 14, 22, 31, 43, 57, 75, 96, 122, 152, 188, 231, 283):
        y[at:] += 700 * MB
    y += np.random.default_rng(15).normal(0, MB, 300)
    found = judge(series_of(y, x=1.5 * np.arange(300), kind=AxisKind.SECONDS))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_floors_that_each_lie_higher_are_not_stable() -> None:
    """Six of them, the last a little out of line: they scatter too much for a slope."""
    floors = 1940 + np.array([0, 7, 14, 20, 27, 34, 45])
    cycles = [np.r_[np.full(70, low), np.full(80, low + 185.0)] for low in floors]
    y = MB * np.concatenate(cycles)
    y += np.random.default_rng(16).normal(0, 0.3 * MB, y.size)
    assert judge(series_of(y, x=10.0 * np.arange(y.size))).verdict not in STABLE_OR_WARMUP
    level = y - MB * np.repeat(floors, 150)
    assert (
        judge(series_of(2000 * MB + level, x=10.0 * np.arange(y.size))).verdict in STABLE_OR_WARMUP
    )

"""Memory that is taken for a moment: a few evaluations or checkpoints, a lone reading."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.measurements import Role
from memdiag.values.verdict import Verdict

MB = 1e6
STEPS = 50


def readings(n: int, seed: int, *, growth: float) -> np.ndarray:
    """4 GB with noise of 4 MB that grow by the part `growth` over the run."""
    noise = np.random.default_rng([5, seed]).normal(0, 4 * MB, n)
    return 4000 * MB * (1 + growth * np.arange(n) / n) + noise


def with_excursions(y: np.ndarray, number: int, length: int, height: float) -> np.ndarray:
    """So many excursions, evenly placed, the last of them in the last seventh of the run."""
    y = y.copy()
    for at in np.linspace(0.2, 0.93, number) if number > 1 else [0.93]:
        first = int(at * len(y))
        y[first : first + length] += height
    return y


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize(
    ("n", "length", "height"), [(60, 1, 12e9), (120, 1, 12e9), (120, 4, 2e9), (400, 12, 2e9)]
)
def test_a_few_excursions_neither_hide_a_leak_nor_make_one(
    number: int, n: int, length: int, height: float
) -> None:
    for seed in range(2):
        leaking = with_excursions(readings(n, seed, growth=0.5), number, length, height)
        level = with_excursions(readings(n, seed, growth=0.0), number, length, height)
        x = STEPS * np.arange(n)
        assert judge(series_of(leaking, x=x)).verdict is Verdict.LEAK
        assert judge(series_of(level, x=x)).verdict is Verdict.STABLE


def test_an_excursion_in_which_the_recording_ends_is_one_of_its_kind() -> None:
    y = with_excursions(readings(60, 1, growth=0.0), 3, 1, 2e9)
    y[-1] += 2e9
    assert judge(series_of(y, x=STEPS * np.arange(60))).verdict is Verdict.STABLE
    y[-1] += 2e9  # higher than those before: that is news
    assert judge(series_of(y, x=STEPS * np.arange(60))).verdict is Verdict.INCONCLUSIVE


def test_excursions_that_grow_with_a_leak_are_no_part_of_its_rate() -> None:
    """A table that is copied to grow: some readings meet both copies, the last one, too."""
    n = 60
    y = 20 * MB + 0.08 * MB * np.arange(n)
    y[[30, 36, 41, 50, n - 1]] += 0.2 * y[[30, 36, 41, 50, n - 1]]
    growth = judge(series_of(y, metric="malloc_bytes", role=Role.IN_USE)).series[0].growth_per_x
    assert growth is not None
    assert growth.value == pytest.approx(0.08 * MB, rel=0.03)


def test_what_is_kept_of_an_excursion_is_growth() -> None:
    y = readings(120, 1, growth=0.0)
    for first in (20, 45, 70, 95):
        y[first] += 2e9
        y[first + 1 :] += 0.4e9
    assert judge(series_of(y, x=STEPS * np.arange(120))).verdict in {
        Verdict.LEAK,
        Verdict.INCONCLUSIVE,
    }


def test_the_peak_of_an_excursion_is_told() -> None:
    y = with_excursions(readings(120, 1, growth=0.0), 2, 1, 12e9)
    assert judge(series_of(y)).series[0].peak_value > 15e9


@pytest.mark.parametrize("every", [2, 3, 4])
@pytest.mark.parametrize("n", [60, 400])
def test_spikes_at_every_second_to_fourth_reading_hide_no_leak(every: int, n: int) -> None:
    """They are most of the differences between neighbours, and no drop is large beside them.

    Of every second one nobody knows whether it is a tooth with two readings, whose floor drifts.
    """
    growing = {Verdict.LEAK} if every > 2 else {Verdict.LEAK, Verdict.INCONCLUSIVE}
    for seed in range(2):
        leaking, level = (readings(n, seed, growth=growth) for growth in (0.5, 0.0))
        spikes = (np.arange(n) % every == 1) * 3e9
        x = STEPS * np.arange(n)
        assert judge(series_of(leaking + spikes, x=x)).verdict in growing
        assert judge(series_of(level + spikes, x=x)).verdict in {Verdict.STABLE, Verdict.WARMUP}


def test_a_warm_up_under_spikes_is_one_and_so_is_a_fall_under_them_stable() -> None:
    steps = np.arange(300)
    rng = np.random.default_rng(3)
    spikes = 300 * MB * (steps % 3 == 2) * (1 + 0.1 * rng.normal(size=300))
    warm = 400 * MB + 400 * MB * (1 - np.exp(-steps / 30)) + rng.normal(0, MB, 300)
    assert judge(series_of(warm + spikes)).verdict is Verdict.WARMUP
    few = np.arange(20)
    falling = 500 * MB - 3 * MB * few + 250 * MB * (few % 3 == 1)
    assert judge(series_of(falling)).verdict is Verdict.STABLE

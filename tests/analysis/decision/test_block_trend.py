"""A line through long averages sees growth that pauses."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import MB, asked, every, malloc
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict


def test_growth_with_a_pause_in_each_epoch_is_proposed() -> None:
    """Four epochs that each grow for two thirds of their way and rest while they evaluate."""
    epoch, place = np.divmod(np.arange(400.0), 100)
    y = 8e9 + 4 * MB * (70 * epoch + np.minimum(place, 70))
    found = asked("block_trend", every(10, noisy(y, 5e-4)))
    assert Side.FOR_LEAK in found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.INCONCLUSIVE)


def test_one_late_step_is_not() -> None:
    """A second model that is loaded for the last quarter of the run."""
    y = 8e9 + 300 * MB * (np.arange(400) >= 300)
    found = asked("block_trend", every(10, noisy(y, 5e-4)))
    assert found.sides == {Side.NOT_CONSIDERED}
    assert found.verdicts == (Verdict.WARMUP, Verdict.WARMUP)


@pytest.mark.parametrize("seed", [3, 15, 17, 29])
def test_growth_too_slow_to_matter_is_so_as_a_whole(seed: int) -> None:
    """The history of a fit grows by 160 bytes a step on the average, by some jumps."""
    random, n, jumps = np.random.default_rng([31, seed]), 170, 15
    grown = np.zeros(n)
    at = random.choice(n, jumps, replace=False)
    grown[at] = random.gamma(1, 1, jumps) * 160 * 1120 / jumps
    y = 110 * MB + np.cumsum(grown) + random.normal(0, 1e3, n)
    found = asked("block_trend", malloc(y, x=6.6 * np.arange(n)))
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize("seed", [3, 19, 32, 44])
def test_growth_that_rests_at_its_end_is_one(seed: int) -> None:
    """Pages of a job under load, which may or may not have stopped growing a moment ago."""
    y = 500 * MB * (1 + 0.6 * np.minimum(np.arange(240) / 240, 0.94))
    assert asked("block_trend", every(50, noisy(y, 0.02, seed))).verdicts[0] is Verdict.LEAK

"""A line through long averages sees growth that pauses."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
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

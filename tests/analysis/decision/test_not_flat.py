"""A level that may have begun to grow is not called stable."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict


def test_two_last_readings_far_above_a_level_are_not_stable() -> None:
    """An evaluation, or the first of a leak: ten level readings, and two 600 MB higher."""
    y = 6e9 + 6e8 * (np.arange(12) >= 10)
    found = asked("not_flat", every(10, noisy(y)))
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)


def test_a_level_with_noise_is_stable() -> None:
    """The same program without that."""
    found = asked("not_flat", every(10, noisy(np.full(12, 6e9))))
    assert not found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)

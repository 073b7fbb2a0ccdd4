"""A level that may have begun to grow is not called stable."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every, malloc
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


def test_a_rise_that_is_negligible_even_if_real_is_no_doubt() -> None:
    """A classifier that is fitted batch by batch: 18 bytes a step after a peak, or at most 90."""
    y = np.full(47, 45_670_000.0)
    y[-12:] += [
        3e3,
        3e3,
        3e3,
        5_700,
        125_700,
        11_700,
        198_000,
        134_900,
        132_300,
        18_500,
        20e3,
        20e3,
    ]
    found = asked("not_flat", malloc(y, x=17.0 * np.arange(47)))
    assert not found.sides

"""Samples miss the floor of a sawtooth, by more or less as its period goes by."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def saw(rate: float) -> Series:
    """Teeth of 800 MB, a little shorter than 37 samples, and `rate` bytes a sample that stay."""
    k = np.arange(1800.0)
    return every(1, noisy(10e9 + 800 * MB * ((k / 36.99) % 1) + rate * k))


def test_floors_that_rise_by_what_samples_miss_are_no_leak() -> None:
    """A collector whose cycle beats with the sampler's."""
    found = asked("sampling_blur", saw(0.0))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_floors_that_rise_by_a_tooth_and_more_are_one() -> None:
    """The same collector, which leaves half a megabyte a sample behind."""
    found = asked("sampling_blur", saw(MB / 2))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""A leak grows steadily; what swings as much as it rises does not."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def series(swing: float) -> Series:
    """120 MB over 2,000 steps, under a load that comes and goes twelve times."""
    u = np.arange(200) / 200
    load = swing * np.sin(2 * np.pi * 12 * u + 1)
    return every(10, noisy(6e9 + 120 * MB * u + load, share=0.007 * swing / 60e6, seed=1))


def test_growth_amid_swings_of_its_size_is_no_leak() -> None:
    """Requests of all sizes, whose mean happens to rise."""
    found = asked("irregular", series(60 * MB))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_growth_far_beyond_the_swings_is_one() -> None:
    """The same growth under requests of like sizes."""
    found = asked("irregular", series(4 * MB))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""A line through the whole run that does not hold at its end."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def series(until: float) -> Series:
    """Growth over a part of the run, of 80 readings."""
    return every(50, noisy(1e9 * (1 + np.minimum(np.arange(80) / 80, until)), 0.01, 1))


def test_a_climb_that_rests_over_the_last_fifth_is_a_warm_up() -> None:
    """A dataset that has been read into memory. By its line, it would be left open."""
    found = asked("slower_lately", series(0.78))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)


def test_a_climb_to_the_end_is_one() -> None:
    """Images that are decoded and kept."""
    found = asked("slower_lately", series(1.0))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""A slight rise behind a great climb is as likely its end."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.model import Series
from memdiag.verdicts import Side, Verdict


def climb(rise: float) -> Series:
    """A model is loaded over a fifth of the run, and `rise` bytes come over all of it."""
    u = np.arange(200.0) / 200
    return every(20, noisy(8e9 - 2.4e9 * np.maximum(1 - 5 * u, 0) + rise * u))


def test_a_rise_of_a_hundredth_of_the_climb_is_no_leak() -> None:
    """The last pools of a framework that has just been loaded."""
    found = asked("faint", climb(2e7))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_a_rise_of_a_third_of_the_climb_is_one() -> None:
    """Outputs that are kept behind the same loading."""
    found = asked("faint", climb(8e8))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""Slow waves that rise as a whole are not stable, whatever their last one does."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every, waves

from memdiag.values.verdict import Side, Verdict


def test_days_of_load_that_rise_are_not_stable() -> None:
    """Six days, and half of a day's swing more in the end."""
    y = waves(6.3, 800) + 80e6 * np.linspace(0, 1, 800)
    found = asked("waves_rise", every(1, y))
    assert Side.AGAINST_STABLE in found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.STABLE)


def test_days_of_load_that_return_are() -> None:
    """The same load over a level."""
    found = asked("waves_rise", every(1, waves(6.3, 800)))
    assert not found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)

"""Floors that each lie higher than the one before are not stable."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def cycles(*floors_mb: float) -> Series:
    """Epochs of 150 readings whose second half holds 185 MB more than the first."""
    y = MB * np.repeat(1940.0 + np.array(floors_mb), 150)
    y += 185 * MB * (np.arange(len(y)) % 150 >= 70)
    return every(10, y + np.random.default_rng(16).normal(0, 0.3 * MB, len(y)))


def test_floors_that_rise_are_not_stable() -> None:
    """Seven epochs that each leave some megabytes, too unevenly for a line."""
    found = asked("cycles_rise", cycles(0, 7, 14, 20, 27, 34, 45))
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.STABLE)


def test_floors_that_stay_are_stable() -> None:
    """Epochs that give all of it back."""
    found = asked("cycles_rise", cycles(*[0.0] * 7))
    assert not found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)

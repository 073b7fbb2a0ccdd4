"""Readings that are all the same need no statistics."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict

LEVEL = np.full(50, 5e8)


def test_a_gauge_that_never_moves_is_stable() -> None:
    """Reserved memory that was taken once; without the check, statistics find it stable, too."""
    found = asked("constant", every(10, LEVEL))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)


def test_a_level_with_noise_is_left_to_statistics() -> None:
    """Resident memory that moves by half a megabyte."""
    assert not asked("constant", every(10, noisy(LEVEL))).sides

"""Readings that fall back again and again, and keep nothing."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def teeth(kept: float) -> Series:
    """A collector every 25 steps, of 60 MB each, and `kept` bytes a step that it leaves."""
    k = np.arange(90)
    noise = np.random.default_rng(0).normal(0, 4 * MB, 90)
    return every(1, 4e9 + 60 * MB * (k % 25) + kept * k + noise)


def test_teeth_that_fall_to_the_same_level_are_calm() -> None:
    """The run ends as the fourth tooth rises, which looks like growth."""
    found = asked("bounded_cycles", teeth(0.0))
    assert found.sides == {Side.FOR_CALM}
    assert found.verdicts[0] in {Verdict.STABLE, Verdict.WARMUP}
    assert found.verdicts[1] is Verdict.INCONCLUSIVE


def test_two_readings_of_the_next_tooth_are_no_short_plateau() -> None:
    """Eighteen readings of a collector that is seen to run twice."""
    at = np.arange(18)
    y = 11e9 + 200 * MB * (at % 8) + MB * np.random.default_rng(8).normal(0, 3, 18)
    found = asked("bounded_cycles", every(10, y))
    assert found.sides == {Side.FOR_CALM}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def test_teeth_that_leave_something_are_not() -> None:
    """The same collector beside a list that grows by 30 MB a step."""
    found = asked("bounded_cycles", teeth(30 * MB))
    assert not found.sides
    assert found.verdicts[0] is Verdict.INCONCLUSIVE

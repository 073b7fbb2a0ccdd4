"""Growth that comes to less each time is the end of a warm-up."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked
from memory_series import series_of

from memdiag.values.measurements import AxisKind, Series
from memdiag.values.verdict import Side, Verdict


def epochs(*gained_mb: float) -> Series:
    y = 6e9 + MB * np.cumsum([0.0, *gained_mb])
    return series_of(y, kind=AxisKind.EPOCH)


def test_epochs_that_add_less_each_time_are_no_leak() -> None:
    """A cache of decoded images meets fewer new ones in each epoch."""
    found = asked("slowing", epochs(100, 95, 90, 80, 70, 55))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_neither_are_more_of_them_that_bend() -> None:
    found = asked("bending", epochs(91, 82, 83, 71, 58, 60, 63, 53, 30, 17))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_epochs_that_add_the_same_are_one() -> None:
    """Predictions of each epoch that are kept."""
    found = asked("slowing", epochs(60, 60, 60, 60, 60, 60))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""Two readings above a level are no regime, and most starts of few readings are warm-ups."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked
from memory_series import series_of

from memdiag.values.measurements import AxisKind, Series
from memdiag.values.verdict import Side, Verdict


def epochs(*more_mb: float) -> Series:
    """Six level epochs, and some that grow."""
    return series_of(4e9 + MB * np.array([*[0.0] * 6, *more_mb]), kind=AxisKind.EPOCH)


def test_two_epochs_that_rise_are_no_leak() -> None:
    """A larger evaluation in the last two epochs."""
    found = asked("few_readings", epochs(400, 1800))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_six_epochs_that_rise_are_one() -> None:
    """A buffer that is filled from the seventh epoch on, and not emptied."""
    found = asked("few_readings", epochs(400, 800, 1200, 1600, 2000, 2400))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_five_readings_of_a_start_are_no_leak() -> None:
    """Of such starts, more are warm-ups: a leak would have a confidence below one half."""
    found = asked("few_readings", series_of(9e8 + 25 * MB * np.arange(5), 100.0 * np.arange(5)))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)

"""One last reading that is hardly lower makes no doubt of a leak."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked
from memory_series import series_of

from memdiag.values.measurements import AxisKind, Series
from memdiag.values.verdict import Side, Verdict


def requests(fall: float) -> Series:
    """A service of 40 MB keeps 0.35 MB of each hundred requests; the last reading is lower by a
    part of that growth."""
    mb = 40 + 0.35 * np.arange(22) + np.random.default_rng(0).normal(0, 0.03, 22)
    mb[-1] = mb[-2] - fall * (mb[-2] - mb[0])
    return series_of(MB * mb, 100.0 * np.arange(22), kind=AxisKind.REQUEST)


def test_a_reading_that_is_a_little_lower_leaves_a_leak() -> None:
    """A buffer of 0.2 MB that was free just then."""
    found = asked("last_reading", requests(0.03))
    assert Side.FOR_LEAK in found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.INCONCLUSIVE)


def test_a_reading_that_is_a_tenth_lower_does_not() -> None:
    """A collection: without it the rest is a leak, and that is not enough."""
    found = asked("last_reading", requests(0.1))
    assert Side.FOR_LEAK in found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)

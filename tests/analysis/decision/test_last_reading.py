"""One last reading that is hardly lower makes no doubt of a leak."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked
from memory_series import series_of

from memdiag.model import AxisKind, Series
from memdiag.verdicts import Side, Verdict


def requests(last_mb: float) -> Series:
    """A service of 40 MB that keeps 0.35 MB of each hundred requests, from the fifth on."""
    mb = 40 + 0.35 * np.arange(29) + np.random.default_rng([8, 0]).normal(0, 0.03, 29)
    mb[:4] = mb[4] - np.array([9.2, 3.3, 3.0, 1.4])
    mb[-1] = mb[-2] + last_mb
    return series_of(MB * mb, 100.0 * np.arange(29), kind=AxisKind.REQUEST)


def test_a_reading_that_is_a_little_lower_leaves_a_leak() -> None:
    """A buffer of 0.2 MB that was free just then."""
    found = asked("last_reading", requests(-0.2))
    assert Side.FOR_LEAK in found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.INCONCLUSIVE)


def test_a_reading_that_is_much_lower_does_not() -> None:
    """A collection that gave back a tenth of it: perhaps the first of a plateau."""
    found = asked("last_reading", requests(-0.8))
    assert found.verdicts[0] is not Verdict.LEAK

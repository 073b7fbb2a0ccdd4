"""Several regimes that make one climb, where the last alone is too short to tell."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked
from memory_series import noisy, series_of

from memdiag.values.verdict import Side, Verdict

# Two stops of the recorder, of 2,000 requests each.
X = 100.0 * np.concatenate([np.arange(10), 30 + np.arange(6), [56]])


def test_growth_that_speeds_up_over_gaps_is_proposed() -> None:
    """A service whose sessions pile up faster and faster."""
    y = 1e9 * (1 + X / 1e4 + (X / X[-1]) ** 2)
    found = asked("whole_climb", series_of(noisy(y), X))
    assert found.sides == {Side.FOR_LEAK}
    assert found.verdicts == (Verdict.LEAK, Verdict.INCONCLUSIVE)


def test_a_level_over_gaps_is_not() -> None:
    """The same service, which closes its sessions."""
    found = asked("whole_climb", series_of(noisy(np.full(len(X), 1e9)), X))
    assert found.sides == {Side.NOT_CONSIDERED}
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)

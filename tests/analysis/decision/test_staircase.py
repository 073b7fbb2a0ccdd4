"""Growth by even steps, which no line through a few of them shows."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict

AT = (91, 153, 196, 237, 342)


def test_five_steps_of_a_pool_are_growth() -> None:
    """A pool takes 300 MB more every eighty readings or so."""
    y = 6e9 + 300 * MB * np.searchsorted(AT, np.arange(390.0), side="right")
    found = asked("staircase", every(10, noisy(y, 1e-4)))
    assert Side.FOR_LEAK in found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.INCONCLUSIVE)


def test_steps_that_have_ended_are_none() -> None:
    """The same pool, full since a long time."""
    y = 6e9 + 300 * MB * np.searchsorted(AT, np.arange(1200.0), side="right")
    found = asked("staircase", every(10, noisy(y, 1e-4)))
    assert found.sides == {Side.NOT_CONSIDERED}
    assert found.verdicts[0] is Verdict.WARMUP

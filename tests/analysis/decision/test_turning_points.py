"""The highs and lows of slow waves rise where a leak is beneath them."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every, waves

from memdiag.values.verdict import Side, Verdict

AT = np.linspace(0, 1, 800)


def test_waves_that_rise_are_growth() -> None:
    """Six days of load, and half a day's swing more at the end than at the start."""
    found = asked("turning_points", every(1, waves(6.3, 800) + 80e6 * AT))
    assert Side.FOR_LEAK in found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.INCONCLUSIVE)


def test_waves_over_a_warm_up_are_not() -> None:
    """The same load, over a cache that fills until halfway."""
    filling = 320e6 * np.minimum(AT / 0.5, 1)
    assert Side.FOR_LEAK not in asked("turning_points", every(1, waves(6.3, 800) + filling)).sides

"""Slow waves whose highs and lows do not go on rising carry no leak."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every, waves

from memdiag.values.verdict import Side, Verdict

AT = np.linspace(0, 1, 400)


def test_a_warm_up_in_two_parts_under_waves_is_no_leak() -> None:
    """A service under seven days of load, which fills a second cache in the fourth."""
    parts = np.minimum(AT / 0.1, 1) + np.clip((AT - 0.5) / 0.1, 0, 1)
    found = asked("waves_slow", every(10, waves(7, 400, seed=3) + 160e6 * parts))
    assert Side.AGAINST_LEAK in found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_waves_that_go_on_rising_carry_one() -> None:
    """The same load, over sessions that are never closed."""
    found = asked("waves_slow", every(10, waves(7, 400, seed=3) + 320e6 * AT))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""A tread no longer than those before is no plateau: the next step may come."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every

from memdiag.model import Series
from memdiag.verdicts import Side, Verdict


def stairs(*at_steps: float) -> Series:
    """Segments of 20 MB that an allocator takes at these of 7,000 steps."""
    return every(10, 5.68e9 + 20 * MB * np.searchsorted(at_steps, 10.0 * np.arange(700)))


def test_a_run_that_ends_on_a_tread_is_not_calm() -> None:
    """The last step was 2,500 steps ago, and they come 2,000 apart. (`climbs_as_a_whole` objects as
    well.)"""
    found = asked("step_awaited", stairs(600, 2500, 4500))
    assert Side.AGAINST_CALM in found.sides
    assert found.verdicts[0] is Verdict.INCONCLUSIVE


def test_steps_that_ended_long_ago_leave_it_calm() -> None:
    """The last step was 5,100 steps ago, and they came 650 apart."""
    found = asked("step_awaited", stairs(600, 1200, 1900))
    assert not found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)

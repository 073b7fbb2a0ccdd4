"""Few readings that rise ever faster lie on no line, and are not stable."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every

from memdiag.values.verdict import Side, Verdict


def test_readings_that_double_are_not_stable() -> None:
    """Beams of a search, of which none is ever dropped."""
    found = asked("always_rises", every(1, 1e9 * np.array([1.2, 1.5, 2.2, 4.8, 8.9, 14])))
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)


def test_readings_that_rise_ever_slower_may_be() -> None:
    """A model that is loaded, and a first batch."""
    found = asked("always_rises", every(1, 1e9 * np.array([1.2, 4.8, 7, 8, 8.2, 8.3])))
    assert not found.sides
    assert found.verdicts == (Verdict.WARMUP, Verdict.WARMUP)


def test_a_whole_run_that_still_rises_at_its_end_is_not_stable() -> None:
    """Five steps: the rises slow down, and no two readings are level."""
    found = asked("always_rises", every(1, 1e6 * np.array([500, 520, 541, 552, 556])))
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)


def test_last_readings_that_leave_the_range_of_the_others_are_not_flat() -> None:
    """Tensors of a program that has begun to keep them."""
    for y in ([5, 5, 5, 309, 721], [900.7, 900.1, 900.4, 961.0, 1020.9]):
        found = asked("always_rises", every(500, 1e6 * np.array(y)))
        assert found.sides == {Side.AGAINST_STABLE}
        assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.STABLE)


def test_last_readings_within_the_usual_range_may_be() -> None:
    found = asked("always_rises", every(1, 1e6 * np.array([950, 890, 940, 900, 945, 960])))
    assert not found.sides

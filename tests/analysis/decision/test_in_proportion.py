"""An amount in proportion to a counter that ends is not a leak before its end."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every

from memdiag.values.verdict import Side, Verdict

FILLS = np.round(2.5 * MB * np.arange(600) / MB) * MB


def test_a_cache_that_is_filled_up_to_a_known_count_is_no_leak() -> None:
    found = asked("in_proportion", every(1, FILLS), planned_x=1000.0)
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_growth_above_what_a_program_starts_with_is_one() -> None:
    found = asked("in_proportion", every(1, 300 * MB + FILLS), planned_x=1000.0)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_growth_beyond_the_end_of_the_count_is_one() -> None:
    found = asked("in_proportion", every(1, FILLS), planned_x=500.0)
    assert not found.sides

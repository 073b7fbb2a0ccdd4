"""Pages that are touched for the first time were there before."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every

from memdiag.values.verdict import Side, Verdict


def test_a_heap_that_is_gone_through_is_no_leak() -> None:
    """600 KB of a process of 150 MB, a kilobyte a step."""
    found = asked("first_touch", every(1, 150e6 + 1000.0 * np.arange(600)))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_more_than_a_program_touches_is_one() -> None:
    """The same pace for so long that 1.1 MB have come."""
    found = asked("first_touch", every(1, 150e6 + 1000.0 * np.arange(1100)))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

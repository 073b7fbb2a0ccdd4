"""A climb that levels off is over when its ceiling is near."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.verdicts import Side, Verdict

STEPS = np.arange(300.0)


def test_a_pool_that_has_nearly_reached_its_ceiling_is_a_warm_up() -> None:
    """An allocator that finds its largest block sizes, fewer of them all the time."""
    found = asked("saturating", every(1, noisy(2e9 - 1e9 * np.exp(-STEPS / 60))))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)


def test_a_line_has_no_ceiling() -> None:
    """Outputs that are kept with their graphs."""
    found = asked("saturating", every(10, noisy(2e9 + 5 * MB * STEPS)))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_the_end_of_a_climb_that_is_nearly_over_is_no_doubt() -> None:
    """Twenty readings of a pool, the last of which hardly rise."""
    y = 6e9 - 6e8 * np.exp(-np.arange(20) / 5)
    found = asked("saturating", every(10, noisy(y, seed=2)))
    assert found.sides == {Side.FOR_CALM}
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)

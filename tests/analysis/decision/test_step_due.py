"""Steps over no longer than a warm-up lasts may be those of one."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict


def test_steps_over_sixty_steps_are_no_leak() -> None:
    """Segments of 200 MB, one for every new shape of a batch."""
    y = 4e9 + 200 * MB * np.floor(np.arange(60) / 8)
    found = asked("step_due", every(1, noisy(y, 1e-4)))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_the_same_steps_over_ten_times_the_way_are_one() -> None:
    """A segment for every eighty batches, without an end."""
    y = 4e9 + 200 * MB * np.floor(np.arange(600) / 80)
    found = asked("step_due", every(1, noisy(y, 1e-4)))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""Growth that comes to nothing over any run."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, malloc

from memdiag.values.verdict import Side, Verdict

STEPS = np.arange(2000)


def test_a_loss_history_is_no_leak() -> None:
    """Thirteen bytes a step, kept in a list."""
    found = asked("negligible", malloc(3e8 + 13.0 * STEPS))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.STABLE, Verdict.LEAK)


def test_what_fills_a_gigabyte_in_a_long_run_is_one() -> None:
    """A record of 720 bytes a step that nobody reads."""
    found = asked("negligible", malloc(3e8 + 720.0 * STEPS))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_what_may_be_no_more_than_healthy_jobs_keep_is_no_leak() -> None:
    """243 bytes a step, give or take half of it: a worker that loads data."""
    noise = np.random.default_rng([1, 1]).normal(0, 0.5e6, len(STEPS))
    found = asked("negligible", malloc(5e7 + 243.0 * STEPS + noise))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.STABLE, Verdict.LEAK)

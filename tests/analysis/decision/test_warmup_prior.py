"""Growth no longer than warm-ups last may be one."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict


def test_a_ramp_of_sixty_steps_is_no_leak() -> None:
    """The first batches of a training: caches, workspaces, kernels."""
    found = asked("warmup_prior", every(1, noisy(2e9 + 50 * MB * np.arange(60.0))))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_a_ramp_of_six_hundred_steps_is_one() -> None:
    """Losses that keep their graphs, 5 MB each."""
    found = asked("warmup_prior", every(1, noisy(2e9 + 5 * MB * np.arange(600.0))))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_a_cache_of_which_half_is_filled_in_the_first_epoch_is_no_leak_yet() -> None:
    """A worker keeps the samples that it loads, and in its second epoch half of them are new."""
    rate = np.where(np.arange(480) < 250, 0.8 * MB, 0.42 * MB)
    found = asked("warmup_prior", every(1, noisy(2e8 + np.cumsum(rate))))
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)

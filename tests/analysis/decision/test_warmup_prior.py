"""Growth no longer than warm-ups last may be one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analysis.decision.builders import MB, asked, every
from memory_series import judge, noisy, series_of

from memdiag.report.text.argument_text import clause
from memdiag.values.verdict import Reason, Side, Verdict


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


@pytest.mark.parametrize(
    ("step_s", "expected"), [(1.0, Verdict.INCONCLUSIVE), (30.0, Verdict.LEAK)]
)
def test_slow_steps_outlast_warm_ups_in_time(step_s: float, expected: Verdict) -> None:
    """Ninety iterations of reinforcement learning, each with thousands of steps in it."""
    y = noisy(2e9 + 50 * MB * np.arange(90.0))
    series = series_of(y, at_s=step_s * np.arange(90.0))
    (finding,) = judge(series).series
    assert finding.verdict is expected
    by = next(one for one in finding.trail if one.reason is Reason.OUTLASTS_WARMUP)
    said = clause(by.text, by, finding)
    if expected is Verdict.LEAK:
        assert said == "it grew for 89 steps in 44 min 30 s; 6.7% of warm-ups last longer"
    else:
        assert said == "it grew for 89 steps; 35% of warm-ups last longer"
        (slower,) = judge(replace(series, at_s=10 * series.at_s)).series
        needs = [one.need_more for one in (finding, slower)]
        assert needs[0] is not None
        assert needs[1] is not None
        assert needs[0].more_x > needs[1].more_x


def test_a_cache_of_which_half_is_filled_in_the_first_epoch_is_no_leak_yet() -> None:
    """A worker keeps the samples that it loads, and in its second epoch half of them are new."""
    rate = np.where(np.arange(480) < 250, 0.8 * MB, 0.42 * MB)
    found = asked("warmup_prior", every(1, noisy(2e8 + np.cumsum(rate))))
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)

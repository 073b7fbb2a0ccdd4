"""Staircases of three steps, and those whose last step has just come."""

from __future__ import annotations

import numpy as np
from memory_series import judge, series_of

from memdiag.values.verdict import Verdict


def verdict(y: np.ndarray, x: np.ndarray | None = None) -> Verdict:
    return judge(series_of(y, x=x)).verdict


def test_three_equal_steps_are_over_when_the_last_has_lasted_longer_than_the_others() -> None:
    y = np.full(120, 18e9)
    for at in (20, 45, 70):
        y[at:] += 512e6
    assert verdict(y[:90]) is Verdict.INCONCLUSIVE
    assert verdict(y) is Verdict.WARMUP


def test_a_staircase_after_a_plateau_is_not_stable_for_a_step_that_has_just_come() -> None:
    y = np.full(1000, 4240e6)
    for at in (650, 800, 875, 978):
        y[at:] += 20e6
    assert verdict(y, 10.0 * np.arange(1000)) in {Verdict.LEAK, Verdict.INCONCLUSIVE}

"""Staircases of two steps, and those whose last step has just come."""

from __future__ import annotations

import numpy as np
from memory_series import judge, series_of

from memdiag.verdicts import Verdict


def verdict(y: np.ndarray, x: np.ndarray | None = None) -> Verdict:
    return judge(series_of(y, x=x)).verdict


def test_two_equal_steps_are_over_when_the_second_has_lasted_as_long_as_the_first() -> None:
    def stepped(second: int) -> np.ndarray:
        y = np.full(100, 18e9)
        y[20:] += 512e6
        y[second:] += 512e6
        return y

    assert verdict(stepped(70)) is Verdict.INCONCLUSIVE
    assert verdict(stepped(45)) is Verdict.WARMUP


def test_a_staircase_after_a_plateau_is_not_calm_for_a_step_that_has_just_come() -> None:
    y = np.full(1000, 4240e6)
    for at in (650, 800, 875, 978):
        y[at:] += 20e6
    assert verdict(y, 10.0 * np.arange(1000)) in {Verdict.LEAK, Verdict.INCONCLUSIVE}

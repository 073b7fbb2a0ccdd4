"""Readings that fall back again and again, and keep nothing."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every, malloc
from memory_series import judge

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def teeth(kept: float) -> Series:
    """A collector every 25 steps, of 60 MB each, and `kept` bytes a step that it leaves."""
    k = np.arange(90)
    noise = np.random.default_rng(0).normal(0, 4 * MB, 90)
    return every(1, 4e9 + 60 * MB * (k % 25) + kept * k + noise)


def test_teeth_that_fall_to_the_same_level_are_stable() -> None:
    """The run ends as the fourth tooth rises, which looks like growth."""
    found = asked("bounded_cycles", teeth(0.0))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts[0] in {Verdict.STABLE, Verdict.WARMUP}
    assert found.verdicts[1] is Verdict.INCONCLUSIVE


def test_two_readings_of_the_next_tooth_are_no_short_plateau() -> None:
    """Eighteen readings of a collector that is seen to run twice."""
    at = np.arange(18)
    y = 11e9 + 200 * MB * (at % 8) + MB * np.random.default_rng(8).normal(0, 3, 18)
    found = asked("bounded_cycles", every(10, y))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def given_back(share: float) -> Series:
    """Objects in cycles until a collection at two thirds, which frees this share of them."""
    k = np.arange(150)
    garbage = np.where(k < 100, k, (1 - share) * 100 + k - 100)
    noise = np.random.default_rng(3).normal(0, 0.2 * MB, 150)
    return every(1, 4e9 + 3 * MB * garbage + noise)


def test_a_run_that_gave_all_back_once_keeps_nothing() -> None:
    found = asked("bounded_cycles", given_back(1.0))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts[1] is Verdict.INCONCLUSIVE


def test_a_run_that_gave_a_part_back_may_keep_the_rest() -> None:
    assert not asked("bounded_cycles", given_back(0.7)).sides


def test_a_second_climb_as_high_as_the_first_may_be_given_back_or_not() -> None:
    """Six hundred steps up, one fall to the start, and as far up again."""
    k = np.arange(240)
    noise = np.random.default_rng(3).normal(0, 3 * MB, 240)
    series = every(5, 2e9 + 50 * MB * (k % 120) + noise)
    assert not asked("bounded_cycles", series).sides
    assert judge(series).verdict is Verdict.INCONCLUSIVE


def test_teeth_that_leave_something_are_not() -> None:
    """The same collector beside a list that grows by 30 MB a step."""
    found = asked("bounded_cycles", teeth(30 * MB))
    assert not found.sides
    assert found.verdicts[0] is Verdict.INCONCLUSIVE


def wandering(leak: float) -> Series:
    """A cache that is full after a third of 1,800 steps, of items whose sizes differ, so that it
    falls as slowly as it rises. Read at every fourth step at first, then at every fortieth."""
    x = np.concatenate((np.arange(0, 200, 4.0), np.arange(200, 1800, 30.0)))
    steps, wave = np.random.default_rng(4).normal(0, 0.25, len(x)), np.zeros(len(x))
    for i in np.flatnonzero(x > 600):
        wave[i] = 0.9 * wave[i - 1] + steps[i]
    return malloc(MB * (145 - 28 * np.exp(-x / 120) + wave) + leak * x, x=x)


def test_what_wandered_back_since_a_warm_up_keeps_nothing() -> None:
    found = asked("bounded_cycles", wandering(0.0))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)


def test_a_leak_that_wanders_is_not_what_wandered_back() -> None:
    assert asked("bounded_cycles", wandering(3000.0)).verdicts[0] is not Verdict.WARMUP


def test_a_collection_late_in_a_run_is_not_its_end() -> None:
    """All of the growth is given back a tenth before the end, and it grows again; or it is not."""
    k = np.arange(300)
    cycles = np.where(k < 270, k, k - 270)
    noise = np.random.default_rng(3).normal(0, 0.02 * MB, 300)
    given_back, kept = (judge(malloc(145 * MB + 0.2 * MB * y + noise)) for y in (cycles, k))
    assert given_back.verdict is not Verdict.LEAK
    assert kept.verdict is Verdict.LEAK

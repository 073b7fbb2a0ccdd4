"""Pages that are touched for the first time were there before."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import asked, every, malloc

from memdiag.values.measurements import Role
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


def test_many_steps_in_the_first_seconds_are_the_start_of_a_program() -> None:
    """1,300 steps in 4 s, or in 40."""
    y = 600e6 + 5000.0 * np.arange(1300)
    short, long = (every(1, y, at_s=pace_s * np.arange(1300)) for pace_s in (0.003, 0.03))
    assert asked("first_touch", short).verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)
    assert asked("first_touch", long).verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_what_malloc_counts_is_a_leak_in_the_first_seconds_as_well() -> None:
    at_s = 0.003 * np.arange(1300)
    y = 600e6 + 5000.0 * np.arange(1300)
    found = asked("first_touch", malloc(y, at_s=at_s), every(1, y + 1e8, at_s=at_s))
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


@pytest.mark.parametrize("noise", [1e5, 1e6])
def test_the_last_of_a_curve_is_the_end_of_its_warm_up(noise: float) -> None:
    """A cache that has filled by half of the run rises by less than a megabyte since."""
    random, n = np.random.default_rng([1, 15]), np.arange(200.0)
    y = 700e6 + 200e6 * (1 - np.exp(-n / 20)) + random.uniform(0, noise, len(n))
    assert asked("first_touch", every(10, y)).verdicts[0] is Verdict.WARMUP


def test_little_and_uneven_growth_in_use_is_no_leak() -> None:
    """Two hundred kilobytes of garbage and small caches in 400 steps, seen 60 times; in equal
    amounts, a leak."""
    at = np.arange(60)
    even = 48e6 + 3600.0 * at
    uneven = even + np.random.default_rng(3).normal(0, 4e4, len(at))
    found = asked("first_touch", every(7, uneven, role=Role.IN_USE, metric="malloc_bytes"))
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)
    found = asked("first_touch", every(7, even, role=Role.IN_USE, metric="malloc_bytes"))
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

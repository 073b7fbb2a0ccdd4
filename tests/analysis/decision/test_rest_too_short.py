"""A rest no longer than those before it, or than the climb before it, may be one more of them."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def stairs(*at_steps: float) -> Series:
    """Segments of 20 MB that an allocator takes at these of 7,000 steps."""
    return every(10, 5.68e9 + 20 * MB * np.searchsorted(at_steps, 10.0 * np.arange(700)))


def climb(readings: int) -> Series:
    """600 MB over eighteen readings, and a level after it."""
    return every(10, noisy(6e9 + 6e8 * np.minimum(np.arange(readings) / 17, 1), 3e-4))


def test_a_run_that_ends_on_a_tread_is_not_stable() -> None:
    """The last step was 1,500 steps ago, and they come 2,000 apart. (`climbs_as_a_whole` objects as
    well.)"""
    found = asked("rest_too_short", stairs(1600, 3500, 5500))
    assert Side.AGAINST_STABLE in found.sides
    assert found.verdicts[0] is Verdict.INCONCLUSIVE


def test_steps_that_ended_long_ago_leave_it_stable() -> None:
    """The last step was 5,100 steps ago, and they came 650 apart."""
    found = asked("rest_too_short", stairs(600, 1200, 1900))
    assert not found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)


def test_two_level_readings_after_a_climb_are_no_plateau() -> None:
    """A loader that waits for its disk, or has read all."""
    found = asked("rest_too_short", climb(20))
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)


def test_sixty_are_one() -> None:
    """The same loader, which had read all."""
    found = asked("rest_too_short", climb(80))
    assert not found.sides
    assert found.verdicts == (Verdict.WARMUP, Verdict.WARMUP)

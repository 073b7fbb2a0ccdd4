"""What moved by next to nothing is stable, whatever its trend."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def series(rate: float) -> Series:
    """Sixty readings of a process of 4 GB, under noise of 0.4 MB."""
    return every(10, noisy(4e9 + rate * np.arange(60.0), 1e-4, 6))


def test_two_megabytes_of_four_gigabytes_are_nothing() -> None:
    """Buffers of a log that is flushed now and then."""
    assert asked("immaterial", series(3e4)).verdicts[0] is Verdict.STABLE


def test_sixty_megabytes_are_something() -> None:
    """Log records that are kept."""
    found = asked("immaterial", series(1e6))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_the_last_readings_of_a_climb_are_no_movement() -> None:
    """A cache that is full in the middle of a bin, and a hundred bytes a step after that."""
    at = np.arange(2000.0)
    y = 4e8 + 8e4 * np.minimum(at, 904) + 100 * np.maximum(at - 904, 0)
    found = asked("immaterial", every(1, noisy(y, 1e-6, 3)))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)


def test_a_few_pages_of_a_small_process_are_nothing() -> None:
    """Forty of them, touched after two thirds of the run, and a short rest."""
    touched = np.floor(np.clip((np.arange(300.0) - 200) / 80, 0, 1) * 40)
    found = asked("immaterial", every(1, 36e6 + 4096 * touched))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def test_a_few_pages_of_a_small_process_that_climbs_as_a_whole_are_something() -> None:
    climb = 36e6 + np.floor(np.minimum(np.arange(300.0), 285) * 700 / 4096) * 4096
    assert not asked("immaterial", every(1, climb)).sides


def test_seven_pages_of_a_climb_that_has_ended_are_nothing() -> None:
    """A pool of threads that sleep: 12 pages in all, seven of them after the first third."""
    climb = 43.77e6 + 4096 * np.floor(np.minimum(np.arange(300.0) / 240, 1) * 12)
    assert asked("immaterial", every(1, climb)).verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)

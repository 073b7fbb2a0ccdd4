"""The start of a program tells nothing of what comes after it."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import asked, malloc
from memory_series import judge, series_of

from memdiag.values.measurements import AxisKind, Series
from memdiag.values.verdict import Side, Verdict

START = np.array([4e6, 9e6, 14e6, 14.2e6, *[14.2e6, 14.204e6] * 4])


def test_an_interpreter_that_was_watched_for_a_second_is_not_judged() -> None:
    """Imports, and then nothing: ten readings a second."""
    brief = series_of(START, 0.1 * np.arange(12), kind=AxisKind.SECONDS)
    found = asked("too_few", brief)
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)


def test_the_same_readings_over_ten_seconds_are_judged() -> None:
    """A program that imports for three seconds and then waits."""
    found = asked("too_few", series_of(START, np.arange(12.0), kind=AxisKind.SECONDS))
    assert not found.sides
    assert found.verdicts == (Verdict.WARMUP, Verdict.WARMUP)


def test_many_readings_do_not_make_a_second_longer() -> None:
    y = np.concatenate([START, np.tile([14.2e6, 14.204e6], 40)])
    brief = series_of(y, 0.01 * np.arange(len(y)), kind=AxisKind.SECONDS)
    assert asked("too_few", brief).verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)


def test_a_sleep_of_a_second_is_not_judged() -> None:
    brief = series_of(np.full(10, 4e6), 0.1 * np.arange(10), kind=AxisKind.SECONDS)
    assert asked("too_few", brief).verdicts == (Verdict.INCONCLUSIVE, Verdict.STABLE)


def test_the_request_for_a_longer_run_is_for_the_rest_of_the_shortest_time() -> None:
    found = judge(series_of(START, 0.1 * np.arange(12), kind=AxisKind.SECONDS)).series[0]
    assert found.need_more is not None
    assert found.need_more.more_s == pytest.approx(10.0 - 1.1)


def flat(steps: int, seconds: float, **more: object) -> Series:
    """Pages that are level while so many steps take so long."""
    y = 320e6 + 4096 * (np.arange(steps) % 3 == 0)
    return series_of(y, at_s=np.linspace(0, seconds, steps), **more)  # type: ignore[arg-type]


def test_twenty_steps_in_half_a_second_show_no_calm() -> None:
    found = asked("too_few", flat(20, 0.4))
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.STABLE)
    again = judge(flat(20, 0.4)).series[0].need_more
    assert again is not None
    assert again.more_x == pytest.approx(221, abs=1)


@pytest.mark.parametrize(("steps", "seconds"), [(20, 12.0), (250, 4.0)])
def test_ten_seconds_are_enough_and_so_are_steps_in_which_a_leak_would_show(
    steps: int, seconds: float
) -> None:
    found = asked("too_few", flat(steps, seconds))
    assert not found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)


def test_steps_without_a_clock_are_judged() -> None:
    assert not asked("too_few", series_of(flat(20, 0.4).y)).sides


def test_a_leak_by_the_step_needs_no_ten_seconds() -> None:
    y = 50e6 + 1e5 * np.arange(200.0)
    leak = malloc(y, at_s=np.linspace(0, 2, len(y)))
    assert asked("too_few", leak).verdicts == (Verdict.LEAK, Verdict.LEAK)

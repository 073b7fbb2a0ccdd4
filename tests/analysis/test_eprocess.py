"""What the e-process promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memdiag.analysis.decision.case import Context
from memdiag.analysis.decision.decide import decide
from memdiag.analysis.live.streaming_minima import CAPACITY, Floors
from memdiag.analysis.policy import DEFAULT
from memdiag.analysis.preprocessing.prepare import prepare
from memdiag.analysis.stats.eprocess import RankTest, threshold
from memdiag.values.measurements import Axis, AxisKind, Role, Series, Unit
from memdiag.values.verdict import Verdict

INCONCLUSIVE = Verdict.INCONCLUSIVE


def ever(floors: np.ndarray) -> int | None:
    """Index at which the test first alarms, None if it never does."""
    test = RankTest(len(floors))
    for i, floor in enumerate(floors.tolist()):
        test.add(floor)
        if test.log_value >= threshold(0):
            return i
    return None


def test_looked_at_after_every_floor_it_alarms_on_at_most_one_percent_of_flat_runs() -> None:
    alarms = sum(
        ever(np.random.default_rng([7, i]).normal(size=200)) is not None for i in range(200)
    )
    assert alarms <= 2


def test_ties_count_for_nothing() -> None:
    assert ever(np.ones(500)) is None


def test_a_rise_to_a_plateau_wears_off() -> None:
    floors = np.minimum(np.arange(400.0), 40) + np.random.default_rng(2).normal(0, 1, 400)
    test = RankTest(400)
    for floor in floors.tolist():
        test.add(floor)
    assert test.log_value < threshold(0)


def test_twenty_to_thirty_rising_floors_are_enough_after_any_plateau() -> None:
    for before in (20, 100, 400):
        floors = np.r_[np.random.default_rng(4).normal(size=before), 10 + np.arange(60.0)]
        found = ever(floors)
        assert found is not None
        assert found - before < 45


def test_any_monotone_scale_gives_the_same_value() -> None:
    y = np.random.default_rng(5).normal(size=100)
    one, other = RankTest(100), RankTest(100)
    for value in y.tolist():
        one.add(value)
        other.add(float(np.exp(3 * value)))
    assert one.log_value == other.log_value


@pytest.mark.parametrize("samples", [10, CAPACITY, 10 * CAPACITY + 3])
def test_the_kept_floors_are_the_lowest_of_equal_stretches(samples: int) -> None:
    y = np.random.default_rng(6).normal(size=samples)
    floors = Floors()
    for i, value in enumerate(y.tolist()):
        floors.add(value, float(i), 0.1 * i)
    kept, x, _ = floors.values
    width = floors.width
    assert len(kept) < CAPACITY
    assert (np.diff(x) > 0).all()
    np.testing.assert_array_equal(
        kept, [y[i * width : (i + 1) * width].min() for i in range(len(kept))]
    )


@pytest.mark.parametrize(("chance", "verdict"), [(0.01, Verdict.LEAK), (1e-300, INCONCLUSIVE)])
def test_it_is_asked_of_a_run_that_is_watched_alone(chance: float, verdict: Verdict) -> None:
    policy = replace(DEFAULT, live=replace(DEFAULT.live, chance=chance))
    steps = np.arange(1000.0)
    series = Series(
        metric="rss_bytes",
        column="rss_bytes",
        role=Role.RESIDENT,
        unit=Unit.BYTES,
        axis=Axis(name="step", kind=AxisKind.STEP),
        x=steps,
        y=4e9 + 1e6 * steps,
    )
    prepared = prepare(series, policy)
    assert decide(prepared, policy).verdict is Verdict.LEAK
    assert decide(prepared, policy, Context(merges=0)).verdict is verdict

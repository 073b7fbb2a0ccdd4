import numpy as np
import pytest

from memdiag.analysis.history.change_points import Measured, trends
from memdiag.values.history import Quantity, Run


def measured(values, level=1e9):
    runs = tuple(
        Run(at=f"2026-01-{n:03}", path=f"{n}.csv", commit=f"c{n}", value=float(value))
        for n, value in enumerate(values)
    )
    return Measured(
        group="",
        quantity=Quantity.PEAK,
        metric="rss_bytes",
        unit="bytes",
        axis="step",
        runs=runs,
        level=level,
    )


def test_an_increase_is_found_at_its_run():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(1e9, 2e7, 14), rng.normal(1.3e9, 2e7, 9)])
    (found,) = trends([measured(values)])
    (change,) = found.changes
    assert change.since.commit == "c14"
    assert (change.runs_before, change.runs_after) == (14, 9)
    assert change.after - change.before == pytest.approx(3e8, rel=0.1)
    assert change.p_value < 0.005
    assert change.is_increase


def test_two_changes_are_found():
    rng = np.random.default_rng(2)
    parts = [rng.normal(level, 1e7, 12) for level in (1e9, 1.2e9, 0.9e9)]
    (found,) = trends([measured(np.concatenate(parts))])
    assert [change.since.commit for change in found.changes] == ["c12", "c24"]
    assert [change.is_increase for change in found.changes] == [True, False]


def test_a_change_before_another_is_placed_by_its_own_parts():
    values = [1.1e9 + 5e6 * (n % 3) + 3e8 * (n >= 12) + 4.5e8 * (n >= 30) for n in range(40)]
    (found,) = trends([measured(values)])
    assert [change.since.commit for change in found.changes] == ["c12", "c30"]


def test_an_outlier_is_not_a_change():
    values = [1e9] * 20
    values[9] = 5e9
    assert trends([measured(values)])[0].changes == ()
    assert trends([measured([1e9] * 20)])[0].changes == ()


def test_a_difference_that_does_not_matter_is_not_a_change():
    values = [1e9 + n for n in range(10)] + [1.001e9 + n for n in range(10)]
    assert trends([measured(values)])[0].changes == ()


def test_noise_has_no_changes():
    rng = np.random.default_rng(3)
    series = [measured(rng.normal(1e9, 5e7, 30)) for _ in range(60)]
    assert sum(bool(found.changes) for found in trends(series)) == 0
    alone = [trends([one])[0] for one in series]
    assert sum(bool(found.changes) for found in alone) <= 3


def test_the_same_runs_have_the_same_p_value():
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(1e9, 2e7, 8), rng.normal(1.1e9, 2e7, 8)])
    assert trends([measured(values)]) == trends([measured(values)])

"""No verdict is surer than so few readings and so short a run allow."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

MB = 1e6


def stable(kind: AxisKind, length: float, n: int = 12) -> float:
    """Confidence in a level run of this length."""
    y = 500 * MB + 0.1 * MB * np.array([0, 1, 0, -1] * n)[:n]
    found = judge(series_of(y, np.linspace(0, length, n), kind=kind))
    assert found.verdict in STABLE_OR_WARMUP
    return found.confidence


@pytest.mark.parametrize("kind", list(AxisKind))
def test_a_longer_run_is_surer_to_stay_level(kind: AxisKind) -> None:
    sure = [stable(kind, length) for length in (12, 60, 600, 60_000)]
    assert sure == sorted(sure)
    assert sure[-1] > 0.94


def test_a_dozen_steps_say_little_of_the_next_thousand() -> None:
    assert stable(AxisKind.STEP, 12) < 0.6
    assert stable(AxisKind.SECONDS, 12) < 0.85
    assert stable(AxisKind.STEP, 12_000) > 0.95


def test_a_leak_in_few_readings_is_not_sure() -> None:
    sure = {}
    for n in (8, 12, 48):
        noise = np.random.default_rng(n).normal(0, 0.1 * MB, n)
        x = 1000.0 * np.arange(n)
        found = judge(series_of(500 * MB + 20 * MB * np.arange(n) + noise, x))
        assert found.verdict is Verdict.LEAK
        sure[n] = found.confidence
    assert 0.5 <= sure[8] < 0.75 < sure[12] < 0.95 < sure[48]


def test_a_leak_that_warm_ups_often_last_as_long_as_is_not_sure() -> None:
    """Of few readings, those of a run that may have only begun."""
    sure = []
    for gap in (50.0, 500.0, 1e6):
        y = 500 * MB + 20 * MB * np.arange(15) + np.random.default_rng(3).normal(0, MB / 10, 15)
        found = judge(series_of(y, gap * np.arange(15)))
        assert found.verdict is Verdict.LEAK
        sure.append(found.confidence)
    assert sure[0] < 0.75 < sure[1] < 0.9 < sure[2]


def test_a_warm_up_is_level_since_it_reached_its_level() -> None:
    """Never since the first reading."""
    y = MB * np.array([400, 470, 500, 501, 500.5, 501, 500.2, 500.8, 500.4, 501, 500.9, 500.3])
    found = judge(series_of(y, 100.0 * np.arange(12))).series[0]
    assert found.verdict is Verdict.WARMUP
    assert found.plateau is not None
    assert found.plateau.since_x.value > 0


def test_a_plateau_of_few_readings_after_a_climb_is_not_sure_to_stay() -> None:
    sure = []
    for level in (4, 9, 60):
        y = np.r_[np.arange(1800.0, 4100, 150), 4110.0 - np.arange(level) % 2]
        found = judge(series_of(MB * y, 1000.0 * np.arange(len(y))))
        assert found.verdict is Verdict.WARMUP
        sure.append(found.confidence)
    assert sure == sorted(sure)
    assert sure[0] < 0.93
    assert sure[-1] > 0.94

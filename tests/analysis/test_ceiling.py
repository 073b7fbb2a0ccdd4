"""What is said of memory that stays where a limit keeps it."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.findings import Finding
from memdiag.values.measurements import Limit, Role, Unit
from memdiag.values.verdict import Reason, Verdict

MB = 1e6
GROUP = Limit(name="cgroup memory.max", value_bytes=2_000_000_000, roles=frozenset({Role.RESIDENT}))


def ramp_to(top: float, samples: int = 600) -> np.ndarray:
    """A climb over the first third, then a plateau."""
    random = np.random.default_rng(3)
    y = np.minimum(500 * MB + (top - 500 * MB) * np.arange(samples) / (samples / 3), top)
    return y + random.normal(0, 0.5 * MB, samples)


def found(y: np.ndarray, *limits: Limit, **more: object) -> Finding:
    return judge(series_of(y, **more), limits=limits).series[0]


def test_a_plateau_at_a_containers_limit_is_inconclusive() -> None:
    at_limit = found(ramp_to(1990 * MB), GROUP)
    assert (at_limit.verdict, at_limit.reason) == (Verdict.INCONCLUSIVE, Reason.AT_LIMIT)
    assert at_limit.plateau is None


def test_flat_from_the_first_reading_on_at_the_limit_is_inconclusive_too() -> None:
    flat = np.full(400, 1985 * MB) + np.random.default_rng(1).normal(0, MB, 400)
    assert found(flat, GROUP).reason is Reason.AT_LIMIT


@pytest.mark.parametrize("top", [1800 * MB, 2200 * MB])
def test_a_plateau_away_from_the_limit_is_a_warmup(top: float) -> None:
    assert found(ramp_to(top), GROUP).verdict is Verdict.WARMUP


def test_limits_of_other_memory_do_not_count() -> None:
    other = Limit(name="GPU 0", value_bytes=1_990_000_000, roles=frozenset({Role.DEVICE}))
    assert found(ramp_to(1990 * MB), other).verdict is Verdict.WARMUP
    second = Limit(
        name="GPU 1",
        value_bytes=1_990_000_000,
        roles=frozenset({Role.DEVICE}),
        metric="gpu1_bytes",
    )
    device = found(ramp_to(1990 * MB), second, role=Role.DEVICE, metric="gpu0_bytes")
    assert device.verdict is Verdict.WARMUP


def test_a_device_taken_whole_at_the_start_is_stable_and_one_filled_up_is_not() -> None:
    device = Limit(name="GPU 0", value_bytes=2_000_000_000, roles=frozenset({Role.DEVICE}))
    whole = np.full(400, 1990 * MB) + np.random.default_rng(1).normal(0, MB / 10, 400)
    assert found(whole, device, role=Role.DEVICE).verdict is Verdict.STABLE
    assert found(ramp_to(1990 * MB), device, role=Role.DEVICE).reason is Reason.AT_LIMIT


def test_a_machine_that_is_full_in_percent_is_at_its_limit() -> None:
    percent = np.minimum(20 + 0.4 * np.arange(600.0), 99.2).round(1)
    full = found(percent, role=Role.HOST, unit=Unit.PERCENT, metric="ram_percent")
    assert full.reason is Reason.AT_LIMIT
    half = found(percent / 2, role=Role.HOST, unit=Unit.PERCENT, metric="ram_percent")
    assert half.verdict is Verdict.WARMUP

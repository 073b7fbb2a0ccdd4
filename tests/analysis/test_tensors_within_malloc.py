"""Looks at all tensors are few; malloc, read at every step, holds those of the host."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.measurements import Role, Series, Unit
from memdiag.values.verdict import Verdict

STEPS = 1500
LOOKS = np.array([215.0, 480, 745, 1009, 1274, 1490])
# Cycles that the collector finds now and then, as six looks met them.
MET = np.array([1.919e6, 0.453e6, 0.674e6, 0.952e6, 1.337e6, 1.853e6])


def _counted(metric: str, y: np.ndarray) -> Series:
    return series_of(y, LOOKS, role=Role.TENSORS, metric=metric, process="main", unit=Unit.COUNT)


def _verdict(*, slope: float, on_device: bool) -> Verdict:
    noise = np.random.default_rng(1).normal(0, 2e4, STEPS)
    malloc = 119e6 + slope * np.arange(STEPS) + noise
    return judge(
        series_of(malloc, role=Role.IN_USE, metric="malloc_bytes", process="main"),
        series_of(MET, LOOKS, role=Role.IN_USE, metric="tensor_bytes", process="main"),
        _counted("tensors_cuda", MET / 8e3 if on_device else np.zeros(len(LOOKS))),
    ).verdict


@pytest.mark.parametrize(
    ("slope", "on_device", "verdict"),
    [
        (0.0, False, Verdict.STABLE),
        (0.0, True, Verdict.INCONCLUSIVE),
        (5e3, False, Verdict.LEAK),
    ],
    ids=["on the host", "on a device", "malloc grows"],
)
def test_what_looks_leave_open_malloc_settles_for_the_host(
    slope: float, on_device: bool, verdict: Verdict
) -> None:
    assert _verdict(slope=slope, on_device=on_device) is verdict

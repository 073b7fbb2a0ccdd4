"""Of host memory and that of devices, the one that gains more is named first."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import malloc
from memory_series import noisy, series_of

from memdiag.analysis.diagnose import judge
from memdiag.values.measurements import AxisKind, Recording, Role, Series
from memdiag.values.verdict import Verdict


def vram(y: np.ndarray, x: np.ndarray | None = None, **more: object) -> Series:
    """As the driver counts it."""
    about = {"role": Role.DEVICE, "metric": "vram_bytes", **more}
    return series_of(y, x, **about)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("on_host", "on_device", "named"),
    [(600.0, 2e6, "vram_bytes"), (2e6, 50e3, "malloc_bytes")],
)
def test_of_two_leaks_the_larger(on_host: float, on_device: float, named: str) -> None:
    steps = np.arange(600)
    series = (
        malloc(608e6 + on_host * steps),
        vram(noisy(1.3e9 + on_device * steps, 1e-5)),
    )
    found = judge(Recording(source="test", series=series))
    assert [one.verdict for one in found.series] == [Verdict.LEAK] * 2
    assert found.deciding is not None
    assert found.deciding.metric == named


def test_of_what_is_open_the_larger_though_it_was_read_less_often() -> None:
    often, seldom = np.linspace(0, 40, 400), np.linspace(0, 40, 150)
    series = (
        series_of(noisy(1.3e9 + 120e3 * often, 1e-6), often, kind=AxisKind.SECONDS),
        vram(noisy(1.3e9 + 23e6 * seldom, 1e-4), seldom, kind=AxisKind.SECONDS),
    )
    found = judge(Recording(source="test", series=series))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.deciding is not None
    assert found.deciding.metric == "vram_bytes"

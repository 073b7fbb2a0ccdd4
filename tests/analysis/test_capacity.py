"""What size of card or container is advised, and when none is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.forecasting.capacity import GB, SIZES_GB
from memdiag.report.sections import capacity as shown
from memdiag.report.text.screen import Screen
from memdiag.values.capacity import Capacity, Memory
from memdiag.values.findings import RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Limit, Recording, Role, Series, Unit
from memdiag.values.verdict import Verdict

STEPS = 600
ROLES = {
    "vram_bytes": Role.DEVICE,
    "gpu0_vram_bytes": Role.DEVICE,
    "gpu1_vram_bytes": Role.DEVICE,
    "vram_reserved_bytes": Role.DEVICE_RESERVED,
    "vram_allocated_bytes": Role.DEVICE_ALLOCATED,
    "rss_bytes": Role.RESIDENT,
}
CARD = Limit(name="GPU 0", value_bytes=24 * GB, roles=frozenset({Role.DEVICE}))


def series(metric: str, level_gb: float, growth_gb: float = 0.0, process: str = "tree") -> Series:
    """A level with noise of a MB, and growth over all of its steps."""
    x = np.arange(STEPS, dtype=float)
    noise = np.random.default_rng(0).normal(0, 1e6, STEPS)
    return Series(
        metric=metric,
        column=metric,
        role=ROLES[metric],
        unit=Unit.BYTES,
        axis=Axis(name="step", kind=AxisKind.STEP),
        x=x,
        y=level_gb * GB + growth_gb * GB * x / STEPS + noise,
        process=process,
    )


def found(
    *measured: Series, planned_x: float | None = None, limits: tuple[Limit, ...] = ()
) -> RecordingFinding:
    return diagnose(Recording(source="test", series=measured, planned_x=planned_x, limits=limits))


def room(finding: RecordingFinding, memory: Memory = Memory.DEVICE) -> Capacity | None:
    return next((one for one in finding.capacity if one.memory is memory), None)


def said(finding: RecordingFinding) -> str:
    return " ".join(" ".join(t.plain for t in shown.lines(finding, Screen(width=80))).split())


def test_the_smallest_card_that_fits_and_a_comfortable_one() -> None:
    finding = found(series("vram_bytes", 17.7), limits=(CARD,))
    advice = room(finding)
    assert advice is not None
    assert (advice.needs_bytes, advice.comfortable_bytes) == (20 * GB, 24 * GB)
    assert advice.headroom_bytes == pytest.approx(6.3 * GB, rel=0.01)
    text = "VRAM of all processes peaks at 17.7 GB: requires a card of 20 GB, 24 GB with a margin."
    assert text in said(finding)
    assert "The headroom to GPU 0 (24.0 GB) is 6.30 GB." in said(finding)


@pytest.mark.parametrize("memory", Memory)
@pytest.mark.parametrize("peak_gb", [0.01, 0.9, 7.7, 23.0, 79.0, 140.0])
def test_what_is_needed_holds_the_peak_and_nothing_smaller_does(
    memory: Memory, peak_gb: float
) -> None:
    metric = "vram_bytes" if memory is Memory.DEVICE else "rss_bytes"
    advice = room(found(series(metric, peak_gb)), memory)
    assert advice is not None
    assert advice.needs_bytes is not None
    assert advice.comfortable_bytes is not None
    assert peak_gb * GB < advice.needs_bytes <= advice.comfortable_bytes
    smaller = [s * GB for s in SIZES_GB[memory] if s * GB < advice.needs_bytes]
    assert all(size < 1.06 * advice.peak_bytes for size in smaller)


def test_more_than_any_card_has_is_said_to_be() -> None:
    finding = found(series("vram_bytes", 400))
    assert "no common card is large enough" in said(finding)


def test_a_leak_fits_nowhere() -> None:
    finding = found(series("vram_bytes", 10, 3))
    assert finding.verdict is Verdict.LEAK
    advice = room(finding)
    assert advice is not None
    assert (advice.is_bounded, advice.needs_bytes) == (False, None)
    assert not said(finding)


def test_a_leak_with_a_planned_end_needs_what_it_comes_to() -> None:
    finding = found(series("vram_bytes", 10, 3), planned_x=3 * STEPS)
    advice = room(finding)
    assert advice is not None
    assert advice.until_x == 3 * STEPS
    assert advice.peak_bytes == pytest.approx(19 * GB, rel=0.02)
    assert (advice.needs_bytes, advice.comfortable_bytes) == (20 * GB, 24 * GB)
    assert "by step 1,800, if the trend continues" in said(finding)


def test_where_it_cannot_be_told_nothing_is_advised() -> None:
    y = np.linspace(1, 3, 12) * GB
    short = replace(series("vram_bytes", 1), x=np.arange(12.0), y=y)
    finding = found(short)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.capacity == ()


def test_a_stable_cache_is_no_advice_while_live_tensors_leak() -> None:
    finding = found(
        series("vram_reserved_bytes", 20, process="main"),
        series("vram_allocated_bytes", 10, 3, process="main"),
    )
    advice = room(finding)
    assert advice is not None
    assert not advice.is_bounded


def test_of_several_gpus_the_fullest_speaks() -> None:
    finding = found(
        series("vram_bytes", 30), series("gpu0_vram_bytes", 10), series("gpu1_vram_bytes", 20)
    )
    advice = room(finding)
    assert advice is not None
    assert finding.series[advice.series].metric == "gpu1_vram_bytes"


def test_of_several_processes_without_a_tree_nobody_knows_the_container() -> None:
    ranks = [series("rss_bytes", 5, process=f"rank{n}") for n in range(2)]
    assert room(found(*ranks), Memory.HOST) is None
    whole = room(found(*ranks, series("rss_bytes", 10)), Memory.HOST)
    assert whole is not None
    assert whole.needs_bytes == 12 * GB


def test_what_does_not_fit_is_said_to_be_so() -> None:
    finding = found(series("vram_bytes", 30), limits=(CARD,))
    assert "It exceeds GPU 0 (24.0 GB)." in said(finding)

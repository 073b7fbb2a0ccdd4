"""A part of a recording is judged as all of one is; a part of a finding keeps its verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.narrowing import between_steps, chosen
from memdiag.errors import UsageError
from memdiag.values.measurements import (
    Axis,
    AxisKind,
    Phases,
    Recording,
    Role,
    Series,
    Unit,
)
from memdiag.values.verdict import Verdict

STEP = Axis(name="step", kind=AxisKind.STEP)
CLOCK = Axis(name="at_s", kind=AxisKind.SECONDS)
STEPS = np.arange(2000.0)


def series(y: np.ndarray, *, process: str = "main", axis: Axis = STEP) -> Series:
    at_s = STEPS * 0.1
    return Series(
        metric="rss_bytes",
        column="rss_bytes",
        role=Role.RESIDENT,
        unit=Unit.BYTES,
        axis=axis,
        process=process,
        x=at_s if axis is CLOCK else STEPS,
        y=y,
        at_s=at_s,
        phases=Phases(codes=(STEPS % 2).astype(int), names=("a", "b")),
    )


@pytest.fixture
def recording() -> Recording:
    """Flat for 1,000 steps, then 1 MB per step; the other process is flat."""
    noise = np.random.default_rng(1).normal(0, 1e4, STEPS.size)
    leak = 1e9 + 1e6 * np.maximum(STEPS - 1000, 0) + noise
    return Recording(
        source="x.csv",
        series=(series(leak), series(5e8 + noise, process="worker 7", axis=CLOCK)),
    )


def test_steps_before_the_leak_are_stable(recording: Recording) -> None:
    assert diagnose(recording).verdict is Verdict.LEAK
    assert diagnose(between_steps(recording, None, 900)).verdict is Verdict.STABLE
    assert diagnose(between_steps(recording, 1000, None)).verdict is Verdict.LEAK


def test_all_of_a_series_is_cut_at_the_same_time(recording: Recording) -> None:
    cut = between_steps(recording, 100, 199)
    for one in cut.series:
        assert one.at_s is not None
        assert one.phases is not None
        assert len(one.x) == len(one.y) == len(one.at_s) == len(one.phases.codes) == 100
        assert (one.at_s[0], one.at_s[-1]) == pytest.approx((10.0, 19.9))
    assert cut.notes[-1] == "only the samples from step 100 to step 199 were judged"


def test_no_bounds_change_nothing(recording: Recording) -> None:
    assert between_steps(recording, None, None) is recording


def test_steps_that_are_not_there_are_an_error(recording: Recording) -> None:
    with pytest.raises(UsageError, match="no samples") as raised:
        between_steps(recording, 5000, None)
    assert raised.value.remedy == "its steps are 0 to 1999"
    without = replace(recording, series=recording.series[1:])
    with pytest.raises(UsageError, match="no steps"):
        between_steps(without, 5, None)


def test_chosen_series_keep_their_findings(recording: Recording) -> None:
    whole = diagnose(recording)
    for process in ("worker 7", "7"):
        part = chosen(whole, (), (process,))
        assert part.verdict is Verdict.STABLE
        assert part.series == (whole.series[1],)
        assert part.deciding is whole.series[1]
        assert part.growth is None
    for metric in ("rss", "RSS_bytes"):
        part = chosen(whole, (metric,), ("main",))
        assert (part.verdict, part.growth) == (Verdict.LEAK, whole.growth)
        assert part.deciding is whole.deciding
    assert chosen(whole, (), ()) is whole
    with pytest.raises(UsageError, match="no such series"):
        chosen(whole, ("vram",), ())

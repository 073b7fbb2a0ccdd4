"""What a picture shows of a recording: every spike, every mark, and no text that acts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from report import diagnoses

from memdiag.analysis.comparison.compare import compare
from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.readings import with_readings
from memdiag.report.picture.model import MarkKind, vertical_range
from memdiag.report.picture.of_comparison import difference
from memdiag.report.picture.of_finding import of_deciding, of_finding, of_recording
from memdiag.report.text.screen import Screen
from memdiag.values import measurements
from memdiag.values.findings import Culprit, GrowthCause, How, RecordingFinding
from memdiag.values.measurements import (
    Axis,
    AxisKind,
    MarkLevel,
    Phases,
    Recording,
    Role,
    Series,
    Unit,
)

SCREEN = Screen(width=100)
STEP = Axis(name="step", kind=AxisKind.STEP)


def series(y: np.ndarray, process: str = "", **more: object) -> Series:
    return Series(
        metric="rss_bytes",
        column="rss_bytes",
        role=Role.RESIDENT,
        unit=Unit.BYTES,
        axis=STEP,
        x=np.arange(len(y), dtype=float),
        y=y,
        process=process,
        **more,  # type: ignore[arg-type]
    )


def judged(*recorded: Series) -> RecordingFinding:
    recording = Recording(source="run.csv", series=recorded)
    return with_readings(diagnose(recording), recording)


@pytest.mark.parametrize("spike_at", [0, 1, 77_777, 199_999])
def test_a_spike_of_one_reading_is_kept_in_a_long_series(spike_at: int) -> None:
    y = np.full(200_000, 1e9)
    y[spike_at] = 3e9
    found = judged(series(y))
    assert found.readings is not None
    assert (float(spike_at), 3e9) in found.readings.series[0]
    assert len(found.readings.series[0]) < 10_000
    assert found.readings.samples == (200_000,)


def test_readings_without_a_value_are_left_out_and_positions_ascend() -> None:
    y = np.array([1.0, np.nan, 3.0, np.inf, 5.0]) * 1e9
    found = judged(replace(series(y), x=np.array([4.0, 3.0, 2.0, 1.0, 0.0])))
    assert found.readings is not None
    assert found.readings.series == (((0.0, 5e9), (2.0, 3e9), (4.0, 1e9)),)


def test_readings_of_an_earlier_run_of_the_process_are_left_out() -> None:
    y = np.linspace(1e9, 2e9, 60)
    generation = np.repeat([0, 1], 30)
    x = np.tile(np.arange(30.0), 2)
    found = judged(replace(series(y, generation=generation), x=x))
    assert found.readings is not None
    assert len(found.readings.series[0]) == 30
    assert found.readings.series[0][0][1] == pytest.approx(y[30])


def test_phases_are_uninterrupted_runs() -> None:
    codes = np.array([-1, 0, 0, 1, 1, 0, -1, 0])
    tagged = series(np.full(8, 1e9), phases=Phases(codes=codes, names=("train", "eval")))
    found = judged(tagged)
    assert found.readings is not None
    spans = [(s.start_x, s.end_x, s.phase) for s in found.readings.phases]
    assert spans == [
        (1.0, 3.0, "train"),
        (3.0, 5.0, "eval"),
        (5.0, 6.0, "train"),
        (7.0, 7.0, "train"),
    ]


def test_of_very_many_phases_those_of_the_kept_readings_are_known() -> None:
    y = np.full(60_000, 1e9)
    y[33_333] = 3e9  # in the second of two phases that change with each reading
    codes = np.arange(60_000) % 2
    found = judged(series(y, phases=Phases(codes=codes, names=("train", "eval")))).readings
    assert found is not None
    assert 1 < len(found.phases) <= len(found.series[0])
    (at,) = (span for span in found.phases if span.start_x <= 33_333 < span.end_x)
    assert at.phase == "eval"
    starts = [span.start_x for span in found.phases]
    assert starts == sorted(starts)


def test_phases_have_printable_names() -> None:
    codes = np.zeros(60, dtype=int)
    tagged = series(np.full(60, 1e9), phases=Phases(codes=codes, names=("a\x1b[31m\n\u202e",)))
    picture = of_deciding(judged(tagged), SCREEN)
    assert picture is not None
    assert [span.phase for span in picture.phases] == ["a\\x1b[31m\\n\\u202e"]


def test_a_leak_has_its_onset_its_segments_and_a_cone_that_starts_at_its_end() -> None:
    steps = np.arange(600.0)
    y = 1e9 + 1e6 * np.maximum(0, steps - 200) + 1e4 * np.sin(steps)
    picture = of_deciding(judged(series(y)), SCREEN)
    assert picture is not None
    (curve,) = picture.curves
    assert [mark.kind for mark in curve.marks] == [MarkKind.ONSET]
    assert curve.segments
    start, end = curve.cone
    assert start.low == start.value == start.high
    assert end.low <= end.value <= end.high
    assert end.x == pytest.approx(599 * 1.25, rel=0.02)
    assert picture.title.startswith("LEAK ")


def test_culprits_and_thresholds_are_marked_where_they_began() -> None:
    found = judged(replace(series(1e9 + 1e6 * np.arange(400.0)), x=np.arange(10.0, 410.0)))
    culprit = Culprit(
        file="/home/me/train.py",
        line=35,
        code=None,
        function="main",
        holder="list `kept`",
        process="",
        bytes_per_step=1e6,
        bytes_per_s=1e7,
        count_per_step=1.0,
        share=0.9,
        since_step=3,
        how=How.WATCHED,
    )
    cause = GrowthCause(kind=None, share_explained=0.9, culprits=(culprit,), fix=None)
    crossed = measurements.Mark(
        level=MarkLevel.WARNING,
        threshold="--warn-at 1.2GB",
        threshold_bytes=1_200_000_000,
        at_s=20.0,
        metric="rss_bytes",
        process="",
        value_bytes=1_201_000_000,
        step=211,
    )
    elsewhere = replace(crossed, metric="vram_bytes")
    picture = of_deciding(replace(found, cause=cause, marks=(crossed, elsewhere)), SCREEN)
    assert picture is not None
    marks = {mark.kind: mark for mark in picture.curves[0].marks}
    assert len(picture.curves[0].marks) == 3
    assert (marks[MarkKind.CULPRIT].x, marks[MarkKind.CULPRIT].label) == (10.0, "train.py:35")
    assert (marks[MarkKind.THRESHOLD].x, marks[MarkKind.THRESHOLD].label) == (
        211.0,
        "--warn-at 1.2GB",
    )


def test_a_change_between_two_segments_is_a_jump() -> None:
    y = np.where(np.arange(400) < 200, 1e9, 2e9) + np.random.default_rng(1).normal(0, 1e6, 400)
    curve = of_finding(judged(series(y)).series[0], SCREEN).curves[0]
    (jump,) = curve.jumps
    assert jump.x == pytest.approx(199.5, abs=5)
    assert jump.after_value - jump.before_value == pytest.approx(1e9, rel=0.05)


def test_segment_of_a_sawtooth_touches_its_readings() -> None:
    steps = np.arange(1200.0)
    kept = np.random.default_rng(0).random(1200) < 0.4
    y = 1e9 + 5e5 * (steps % 150)
    sampled = replace(series(y[kept]), x=steps[kept])
    finding = judged(sampled).series[0]
    (segment,) = of_finding(finding, SCREEN).curves[0].segments
    assert min(segment.start_value, segment.end_value) >= 0.999e9
    assert max(segment.start_value, segment.end_value) <= 1.01e9


def test_other_processes_are_behind_the_deciding_series_and_other_units_have_their_own() -> None:
    steps = np.arange(500.0)
    leaks = series(1e9 + 1e6 * steps, "rank1")
    flat = series(1e9 + 1e4 * np.sin(steps), "rank0")
    count = replace(
        series(np.full(500, 12.0), "rank0"),
        metric="tensors",
        column="tensors",
        role=Role.TENSORS,
        unit=Unit.COUNT,
    )
    found = judged(flat, leaks, count)
    picture = of_deciding(found, SCREEN)
    assert picture is not None
    assert [curve.name for curve in picture.curves] == ["RSS of rank1", "RSS of rank0"]
    assert [one.unit for one in of_recording(found, SCREEN)] == [Unit.BYTES, Unit.COUNT]


def test_difference_of_a_comparison_is_taken_where_both_sides_have_readings() -> None:
    before, after = judged(series(np.full(100, 1e9))), judged(series(1.5e9 + np.arange(60.0)))
    found = compare([before], [after]).deciding
    assert found is not None
    (curve,) = difference(found).curves
    assert curve.points[0][0] == 0.0
    assert curve.points[-1] == (59.0, pytest.approx(5e8 + 59))
    found = replace(found, trace_base=((200.0, 1.0), (300.0, 1.0)))
    assert difference(found).curves[0].points == ()
    assert difference(replace(found, trace_base=())).curves[0].points == ()


def test_nothing_measured_is_no_picture() -> None:
    nothing = replace(judged(series(np.full(30, 1e9))), series=(), decided_by=None, readings=None)
    assert of_deciding(nothing, SCREEN) is None
    assert of_recording(nothing, SCREEN) == ()


def test_names_from_outside_are_printable() -> None:
    found = diagnoses.SCREENS["hostile"]().recordings[0]
    for picture in of_recording(found, SCREEN):
        texts = [picture.title, picture.subject]
        texts += [curve.name + curve.process for curve in picture.curves]
        texts += [mark.label for curve in picture.curves for mark in curve.marks]
        texts += [level.label for level in picture.levels]
        assert all(text.isprintable() for text in texts)


@pytest.mark.parametrize(
    ("values", "least_span", "expected"),
    [
        ([10.0, 20.0], 0.0, (10.0, 20.0)),
        ([100.0, 101.0], 20.0, (90.5, 110.5)),
        ([1.0, 2.0], 10.0, (0.0, 10.0)),
        ([-1.0, 2.0], 10.0, (-4.5, 5.5)),
        ([5.0, 5.0], 0.0, (4.75, 5.25)),
    ],
)
def test_a_range_covers_its_least_span_and_stays_above_zero(
    values: list[float], least_span: float, expected: tuple[float, float]
) -> None:
    assert vertical_range(values, least_span) == pytest.approx(expected)

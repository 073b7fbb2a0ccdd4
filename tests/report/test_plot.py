"""The plot shows what the series did, at its true place, at every width."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdiag.report.picture.model import Curve, Level, Mark, MarkKind, Picture
from memdiag.report.plotting import axis_ticks
from memdiag.report.plotting.plot import draw
from memdiag.values.measurements import AxisKind, Unit

BRAILLE = re.compile("[\u2801-\u28ff]")
VALUES = st.floats(min_value=-1e15, max_value=1e15) | st.sampled_from(
    [float("nan"), float("inf"), float("-inf")]
)


def plot(trace: list[tuple[float, float]], marks: tuple[Mark, ...] = (), **more: object) -> Picture:
    return Picture(
        unit=Unit.BYTES,
        axis=AxisKind.STEP,
        axis_word="step",
        curves=(Curve(name="RSS", points=tuple(trace), marks=marks),),
        **more,  # type: ignore[arg-type]
    )


def lines(drawing: Picture, width: int = 80, *, ascii_only: bool = False) -> list[str]:
    return [line.plain for line in draw(drawing, width, ascii_only=ascii_only)]


def columns_of_curve(line: str) -> list[int]:
    return [match.start() for match in BRAILLE.finditer(line)]


@given(st.lists(st.tuples(VALUES, VALUES), max_size=60), st.sampled_from([40, 60, 80, 160]))
def test_any_trace_can_be_drawn_within_its_width(
    trace: list[tuple[float, float]], width: int
) -> None:
    for ascii_only in (False, True):
        drawn = lines(plot(trace), width, ascii_only=ascii_only)
        assert all(len(line) <= width for line in drawn)
        assert all(line.isascii() for line in drawn) or not ascii_only


@pytest.mark.parametrize("width", [40, 60, 80, 160])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_mark_stands_over_the_bend_of_the_curve(width: int, ascii_only: bool) -> None:
    bend = [(0.0, 1e9), (300.0, 1e9), (1000.0, 5e9)]
    marked = plot(bend, (Mark(x=300, label="onset", kind=MarkKind.ONSET),))
    drawn = lines(marked, width, ascii_only=ascii_only)
    stroke = drawn[0].index("!" if ascii_only else "┊")
    start = next(line for line in drawn if "1 GB" in line)
    flat = re.search(r"[┤+]( ?[^ ]+)", start)
    assert flat is not None
    first = drawn[-2].index("+" if ascii_only else "└") + 1
    assert abs((stroke - first) / (width - 1 - first) - 0.3) < 0.03
    assert abs(flat.end() - 1 - stroke) <= width * 0.06


def test_a_value_lies_in_the_row_that_bears_its_number() -> None:
    drawn = lines(plot([(0.0, 2e9), (5.0, 2e9), (5.0, 6e9), (10.0, 6e9)]))
    for number, cells in (("2 GB", slice(8, 40)), ("6 GB", slice(50, 79))):
        row = next(line for line in drawn if number in line)
        assert len(BRAILLE.findall(row[cells])) >= 25


def test_a_curve_has_no_gap() -> None:
    drawn = lines(plot([(0.0, 0.0), (1.0, 9e9), (50.0, 1e9), (100.0, 4e9)]))
    covered = {column for line in drawn for column in columns_of_curve(line)}
    assert covered == set(range(min(covered), max(covered) + 1))
    assert len(covered) >= 70


def test_noise_on_a_level_is_drawn_flat() -> None:
    noisy = [(float(at), 4e9 + (at % 2) * 1e6) for at in range(100)]
    flat = lines(plot(noisy, least_span=8e8))
    assert sum(bool(BRAILLE.search(line)) for line in flat) == 1


def test_a_limit_is_drawn_with_its_name() -> None:
    drawn = lines(plot([(0.0, 1e9), (9.0, 2e9)], levels=(Level(value=4e9, label="GPU 0"),)))
    assert any("┄┄ GPU 0 ┄" in line for line in drawn)


def test_one_point_is_no_plot() -> None:
    assert lines(plot([(1.0, 2.0)])) == []
    assert lines(plot([(1.0, 2.0), (2.0, float("nan"))])) == []


def test_a_label_that_does_not_fit_on_the_right_stands_on_the_left() -> None:
    mark = Mark(x=9.8, label="onset, step 10", kind=MarkKind.ONSET)
    drawn = lines(plot([(0.0, 1e9), (10.0, 2e9)], (mark,)), 60)
    assert drawn[0].endswith("onset, step 10 ┊")


@given(
    st.floats(min_value=-1e15, max_value=1e15),
    st.floats(min_value=1e-3, max_value=1e15),
    st.integers(min_value=1, max_value=12),
)
def test_marks_are_round_few_and_told_apart(low: float, span: float, wanted: int) -> None:
    distance = axis_ticks.spacing(span, wanted)
    if low + distance / 1e6 == low:
        return
    values = axis_ticks.marks(low, low + span, distance)
    assert len(values) <= wanted + 1
    mantissa = float(f"{distance:e}".split("e")[0])
    assert any(abs(mantissa - m) < 1e-9 for m in (1.0, 2.0, 2.5, 5.0, 10.0))


def test_times_are_marked_in_a_unit_that_suits_them() -> None:
    assert axis_ticks.axis_unit(AxisKind.SECONDS, 60) == (1.0, "s")
    assert axis_ticks.axis_unit(AxisKind.SECONDS, 3600) == (60.0, "min")
    assert axis_ticks.axis_unit(AxisKind.SECONDS, 86400) == (3600.0, "h")
    assert axis_ticks.axis_unit(AxisKind.SECONDS, 10 * 86400) == (86400.0, "d")
    assert axis_ticks.axis_unit(AxisKind.STEP, 1e6) == (1.0, "")

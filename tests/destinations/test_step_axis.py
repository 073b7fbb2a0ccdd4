"""The positions of rows on a whole-numbered axis."""

from __future__ import annotations

from memdiag.destinations.messages import Row
from memdiag.destinations.step_axis import StepAxis


def row(at_s: float, step: int | None = None) -> Row:
    return Row(at_s=at_s, step=step, phase="", readings={"tree": {"rss_bytes": 1.0}})


def test_rows_before_the_first_step_wait_for_it_and_are_at_zero() -> None:
    axis = StepAxis()
    assert list(axis.placed([row(0.1), row(5.0)])) == []
    assert [at for at, _ in axis.placed([row(6.0, 1), row(7.0, 2)])] == [0, 0, 1, 2]


def test_without_steps_the_axis_is_seconds_and_stays_so() -> None:
    axis = StepAxis()
    assert [at for at, _ in axis.placed([row(1.5), row(61.2)])] == [1, 61]
    assert [at for at, _ in axis.placed([row(70.0, 3)])] == [70]


def test_a_short_run_without_steps_is_placed_at_its_end() -> None:
    axis = StepAxis()
    assert list(axis.placed([row(1.0), row(2.0)])) == []
    assert [at for at, _ in axis.placed((), is_last=True)] == [1, 2]

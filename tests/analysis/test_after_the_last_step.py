"""What a program does after its last step is none of the steps' growth."""

from __future__ import annotations

import numpy as np
from memory_series import judge, series_of

from memdiag.values.findings import Finding
from memdiag.values.measurements import Role, Series
from memdiag.values.verdict import Verdict

PACE_S, STEPS = 0.0137, 1262
ENDED_S = PACE_S * STEPS


def rows(after_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and steps, ten rows a second: each fifth one tells of 18 steps, the last one of fewer,
    and comes when the program has gone on for a while."""
    at_s = np.arange(0.05, ENDED_S + after_s, 0.1)
    told_s = np.floor(at_s / 0.25) * 0.25
    return at_s, np.minimum(np.floor(told_s / PACE_S), STEPS)


def found_of(y: np.ndarray, at_s: np.ndarray, step: np.ndarray, **more: object) -> Finding:
    first = int(np.argmax(step > 0))
    series: Series = series_of(y[first:], step[first:], at_s=at_s[first:], process="main", **more)
    return judge(series).series[0]


def test_memory_that_is_allocated_to_save_a_model_is_no_growth_of_steps() -> None:
    at_s, step = rows(2.5)
    saved = 200e6 * np.maximum(at_s - ENDED_S, 0)
    found = found_of(
        404e6 + saved + 4096 * np.random.default_rng(1).integers(0, 3, len(at_s)), at_s, step
    )
    assert found.verdict is Verdict.STABLE
    assert abs(found.latest_value - 404e6) < 1e5
    assert found.peak_value > 800e6, "what it needs includes the end"


def test_what_is_freed_after_the_last_step_is_still_held_in_it() -> None:
    at_s, step = rows(2.5)
    tensors = np.where(at_s > ENDED_S, 24.0, 105.0)
    found = found_of(tensors, at_s, step, role=Role.TENSORS, metric="tensors")
    assert found.latest_value == 105


def test_steps_that_go_on_to_the_end_are_all_judged() -> None:
    at_s, step = rows(0.0)
    found = found_of(404e6 + 50e3 * step, at_s, step)
    assert found.verdict is Verdict.LEAK
    assert found.last_x == step[-1]


def test_drop_before_the_told_end_of_the_work_is_no_tear_down() -> None:
    """A garbage collection late in the run."""
    y = 4e8 + 1e6 * np.arange(300.0)
    y[270:] = 4.2e8
    assert judge(series_of(y)).series[0].dropped_end == 30
    assert judge(series_of(y, ends_with_work=True)).series[0].dropped_end == 0


def test_drop_beside_the_last_step_is_tear_down() -> None:
    """A function returns, and what it has had is freed before the program ends."""
    y = 4e8 + 1e6 * np.arange(300.0)
    y[-1] = 4.2e8
    assert judge(series_of(y, ends_with_work=True)).series[0].dropped_end == 1

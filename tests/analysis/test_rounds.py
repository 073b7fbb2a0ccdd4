"""Passes over the data and cycles of phases as evidence that growth has outlasted warm-ups."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.model import AxisKind, Phases
from memdiag.verdicts import Verdict

MB = 1e6


def ramp(steps: int, seed: int = 0) -> np.ndarray:
    """Growth from the start by 20 MB a step."""
    return 2e9 + 20 * MB * np.arange(steps) + np.random.default_rng(seed).normal(0, MB, steps)


def tagged(steps: int, period: int, length: int = 1) -> Phases:
    """`length` steps of eval at the end of every `period` steps, train before them."""
    codes = (np.arange(steps) % period >= period - length).astype(np.int64)
    return Phases(codes=codes, names=("train", "eval"))


def verdict(steps: int, x: np.ndarray | None = None, **more: object) -> Verdict:
    return judge(series_of(ramp(steps), x, **more)).verdict


def test_many_passes_over_the_data_make_growth_a_leak_that_its_steps_leave_open() -> None:
    assert verdict(180) is Verdict.INCONCLUSIVE
    assert verdict(180, x_per_epoch=20.0) is Verdict.LEAK


def test_growth_within_the_first_pass_is_judged_by_its_steps() -> None:
    assert verdict(180, x_per_epoch=1000.0) is Verdict.INCONCLUSIVE
    assert verdict(600, x_per_epoch=1000.0) is verdict(600)


def test_passes_of_a_few_steps_say_no_more_than_the_steps() -> None:
    assert verdict(180, x_per_epoch=2.0) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("x_per_epoch", [10.0, 30.0, 75.0])
def test_no_ramp_as_long_as_warmups_of_pools_last_is_a_leak_for_its_passes(
    x_per_epoch: float,
) -> None:
    assert verdict(130, x_per_epoch=x_per_epoch) is Verdict.INCONCLUSIVE


def test_passes_shorten_the_wait_of_runs_on_a_clock() -> None:
    seconds = 3.0 * np.arange(180)
    assert verdict(180, seconds, kind=AxisKind.SECONDS) is Verdict.INCONCLUSIVE
    found = verdict(180, seconds, kind=AxisKind.SECONDS, x_per_epoch=30.0)
    assert found is Verdict.LEAK


def test_growth_through_many_cycles_of_every_phase_is_a_leak() -> None:
    assert verdict(200, phases=tagged(200, period=15)) is Verdict.LEAK


def test_one_cycle_is_not_yet_a_round() -> None:
    assert verdict(200, phases=tagged(200, period=110)) is Verdict.INCONCLUSIVE


def test_phases_of_every_step_say_no_more_than_the_steps() -> None:
    assert verdict(200, phases=tagged(200, period=3)) is Verdict.INCONCLUSIVE


def test_a_phase_that_came_once_leaves_open_what_its_rounds_are() -> None:
    phases = tagged(200, period=15)
    codes = np.where(np.arange(200) == 100, 2, phases.codes)
    once = Phases(codes=codes, names=("train", "eval", "export"))
    assert verdict(200, phases=once) is Verdict.INCONCLUSIVE


def test_a_start_up_that_never_comes_again_is_no_phase_to_wait_for() -> None:
    phases = tagged(200, period=15)
    codes = np.where(np.arange(200) < 4, 2, phases.codes)
    started = Phases(codes=codes, names=("train", "eval", "setup"))
    assert verdict(200, phases=started) is Verdict.LEAK


def test_tags_of_single_steps_that_sparse_samples_meet_by_chance_are_no_cycles() -> None:
    chance = np.random.default_rng(7)
    for _ in range(20):
        codes = (chance.uniform(size=200) < 0.06).astype(np.int64)
        random = Phases(codes=codes, names=("train", "optim"))
        assert verdict(200, phases=random) is Verdict.INCONCLUSIVE


def test_a_plateau_stays_a_plateau_however_many_passes() -> None:
    level = 2e9 + 20 * MB * np.minimum(np.arange(300), 100)
    noisy = level + np.random.default_rng(0).normal(0, MB, 300)
    assert judge(series_of(noisy, x_per_epoch=10.0)).verdict is Verdict.WARMUP

"""Iterations are counted right whatever the shape of the training."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memdiag.capture.probelink.ring_reader import Kind
from memdiag.probe.step_counter import WAIT_BACKWARDS, WAIT_BATCHES, WAIT_STEPS, StepCounter

PROGRAM = Path(__file__).parent / "programs" / "iteration_cases.py"


@pytest.fixture
def iterations() -> StepCounter:
    return StepCounter()


def total(iterations: StepCounter, optimizers: str) -> int:
    return sum(iterations.optimizer_stepped(key) for key in optimizers)


def test_generator_sets_the_pace_when_the_critic_steps_more_often(iterations) -> None:
    for key in "CG":
        iterations.optimizer_made(key)
    assert [iterations.optimizer_stepped(key) for key in "CCCG" * 3] == [0, 0, 0, 1] * 3


def test_pace_changes_to_a_slower_optimizer_that_comes_later(iterations) -> None:
    assert total(iterations, "A" * 10) == 10
    assert total(iterations, "AAAB" * 10) in range(10, 16)


def test_pace_changes_when_the_slower_optimizer_stops(iterations) -> None:
    for key in "AB":
        iterations.optimizer_made(key)
    assert total(iterations, "AB" * 10) == 10
    assert total(iterations, "A" * 100) == 100


def test_optimizers_that_are_kept_after_their_steps_do_not_end_the_count(iterations) -> None:
    phones = [(f"phone {n}",) * 5 for n in range(200)]
    counted = sum(iterations.optimizer_stepped(key) for steps in phones for key in steps)
    assert counted == pytest.approx(1000, rel=0.1)


def test_those_that_step_side_by_side_count_once_after_the_slowest_has_stopped(iterations) -> None:
    assert total(iterations, "ABC" * 10) == 10
    assert total(iterations, "AB" * 100) == pytest.approx(100, rel=0.15)


def test_one_optimizer_per_parameter_is_one_iteration(iterations) -> None:
    keys = [f"parameter {n}" for n in range(60)]
    for key in keys:
        iterations.optimizer_made(key)
    assert sum(iterations.optimizer_stepped(key) for _ in range(20) for key in keys) == 20


def test_unused_optimizer_is_not_waited_for_for_long(iterations) -> None:
    for key in "AB":
        iterations.optimizer_made(key)
    told = [iterations.optimizer_stepped("A") for _ in range(20)]
    assert told == [0] * (WAIT_STEPS - 1) + [WAIT_STEPS] + [1] * (20 - WAIT_STEPS)


def test_optimizer_with_the_address_of_a_dead_one_is_another(iterations) -> None:
    for _ in range(3):
        iterations.optimizer_made("A")
        assert total(iterations, "A" * 5) == 5
        iterations.optimizer_gone("A")


def test_backward_passes_count_only_until_an_optimizer_steps(iterations) -> None:
    assert [iterations.backward_ended() for _ in range(3)] == [1, 1, 1]
    assert total(iterations, "A") == 1
    assert iterations.backward_ended() == 0


def test_backward_passes_do_not_count_where_each_round_has_an_optimizer_of_its_own(
    iterations,
) -> None:
    for _ in range(WAIT_BACKWARDS):
        iterations.optimizer_made("A")
        assert [(iterations.backward_ended(), total(iterations, "A")) for _ in "1234"] == [
            (0, 1)
        ] * 4
        iterations.optimizer_gone("A")


def test_batches_count_only_where_nothing_is_trained(iterations) -> None:
    told = [iterations.batch_fetched() for _ in range(WAIT_BATCHES + 5)]
    assert sum(told) == WAIT_BATCHES + 5
    iterations.optimizer_made("A")
    assert iterations.batch_fetched() == 0


@pytest.mark.torch
@pytest.mark.slow
def test_every_kind_of_training_is_counted_exactly(watched) -> None:
    pytest.importorskip("torch")
    done = watched.run(sys.executable, str(PROGRAM), timeout=110)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    last_step: dict[object, int] = {}
    counted, true = {}, {}
    for event in watched.events():
        if event.kind is Kind.STEP:
            last_step[event.process] = event.step
            assert event.auto
        if event.kind is Kind.COUNTER:
            counted[event.name] = last_step.get(event.process, 0)
            true[event.name] = event.value
    assert counted == true
    assert len(true) > 25

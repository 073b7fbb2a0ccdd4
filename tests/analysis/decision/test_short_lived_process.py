"""A process that was there for a part of the run makes no doubt of a stable job."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import MB, Asked, asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict


def beside_a_worker(readings: int) -> Asked:
    """A worker that still grows when it ends, in a job of 400 readings whose tree is stable."""
    worker = noisy(250 * MB + 5 * MB * np.arange(readings))
    return asked(
        "short_lived_process",
        every(1, worker, process="DataLoader worker 0"),
        every(1, noisy(np.full(400, 1.5e9), 1e-4), process="main"),
        every(1, noisy(np.full(400, 2e9), 1e-4), process="tree"),
    )


@pytest.mark.parametrize("readings", [40, 110])
def test_a_worker_of_less_than_a_third_of_the_run_is_no_doubt(readings: int) -> None:
    """Each epoch starts its workers anew."""
    found = beside_a_worker(readings)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def test_a_worker_that_leaked_until_it_ended_is_no_leak_of_the_job() -> None:
    """A pool replaces its workers after some jobs, and each keeps its results until then."""
    worker = noisy(250 * MB + 5 * MB * np.maximum(np.arange(380) - 100, 0))
    found = asked(
        "short_lived_process",
        every(1, worker, process="ForkPoolWorker-4"),
        every(10, noisy(np.full(400, 1.5e9), 1e-4), process="main"),
        every(10, noisy(np.full(4000, 2e9), 1e-4), process="tree"),
    )
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.LEAK)


def test_a_worker_of_two_fifths_of_it_is_one() -> None:
    """One of them stays."""
    found = beside_a_worker(160)
    assert not found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)


def test_a_rank_that_leaked_until_its_work_ended_is_a_leak_of_the_job() -> None:
    """Its tree is level only from then on: while the ranks end, and the launcher after them."""
    at_s = 10 + 0.1 * np.arange(200)
    rank = noisy(330 * MB + MB * np.arange(200))
    whole = np.concatenate([np.full(100, 236 * MB), 500 * MB + rank, np.full(60, 1030 * MB)])
    found = asked(
        "short_lived_process",
        every(10, rank, process="rank1", at_s=at_s),
        every(1, noisy(np.full(360, 236 * MB), 1e-4), process="main", at_s=0.1 * np.arange(360)),
        every(1, noisy(whole, 1e-4), process="tree", at_s=0.1 * np.arange(360)),
    )
    assert found.of_first == (Verdict.LEAK, Verdict.LEAK)

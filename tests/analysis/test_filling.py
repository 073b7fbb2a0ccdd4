"""A record of fixed length that fills is no leak: torch keeps a rank's last 2,000 collectives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.findings import Finding
from memdiag.values.measurements import Role, Series
from memdiag.values.verdict import Reason, Verdict

LEVEL, ENTRY_BYTES, ENTRIES = 170e6, 370, 2000


def _collectives(steps: int, per_step: int = 1) -> np.ndarray:
    """What was seen of torch 2.13 with gloo: entries of 370 bytes, and a list that doubles."""
    kept = np.minimum(np.arange(steps) * per_step, ENTRIES)
    slots = np.minimum(2.0 ** np.ceil(np.log2(np.maximum(kept, 1))), ENTRIES)
    noise = np.random.default_rng(3).normal(0, 300, steps)
    return LEVEL + ENTRY_BYTES * kept + 512 * slots + noise


def _found(y: np.ndarray, *, is_rank: bool) -> Finding:
    series = series_of(y, role=Role.IN_USE, metric="malloc_bytes", process="rank0", is_rank=is_rank)
    return judge(series).series[0]


@pytest.mark.parametrize("per_step", [1, 4])
@pytest.mark.parametrize("part", [0.4, 0.7, 0.95])
def test_collectives_that_are_kept_are_no_leak_of_a_rank(part: float, per_step: int) -> None:
    y = _collectives(int(part * ENTRIES / per_step), per_step)
    assert _found(y, is_rank=True).verdict is not Verdict.LEAK


def test_it_is_said_how_long_to_wait_and_what_for() -> None:
    steady = LEVEL + 700.0 * np.arange(1700) + np.random.default_rng(3).normal(0, 300, 1700)
    found = _found(steady, is_rank=True)
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.FILLING)
    assert found.need_more is not None
    assert found.need_more.more_x is not None
    assert found.need_more.more_x >= (4e6 - 1.2e6) / 700
    assert _found(steady, is_rank=False).verdict is Verdict.LEAK


def test_once_they_are_all_there_a_rank_is_stable() -> None:
    found = _found(_collectives(3 * ENTRIES), is_rank=True)
    assert found.verdict in {Verdict.WARMUP, Verdict.STABLE}


@pytest.mark.parametrize("rate", [5e3, 50e3])
def test_a_leak_of_more_than_they_take_is_a_leak_of_a_rank(rate: float) -> None:
    steps = int(6e6 / rate) + 400
    y = _collectives(steps) + rate * np.arange(steps)
    assert _found(y, is_rank=True).verdict is Verdict.LEAK


def _pages(grown: float, *, is_rank: bool, process: str) -> Series:
    """Steady growth over 1,500 steps, and the noise of pages."""
    steps = np.arange(1500)
    y = 338e6 + grown * (0.1 * (steps > 480) + 0.9 * steps / 1500)
    y += np.random.default_rng(6).normal(0, 0.2e6, 1500)
    return series_of(y, process=process, is_rank=is_rank)


def test_pages_that_a_record_takes_are_no_leak_of_a_rank_or_of_the_job() -> None:
    alone = _pages(3e6, is_rank=False, process="rank0")
    assert judge(alone).verdict is Verdict.LEAK
    ranks = [_pages(3e6, is_rank=True, process=f"rank{n}") for n in range(2)]
    tree = replace(_pages(6e6, is_rank=False, process="tree"), y=ranks[0].y + ranks[1].y)
    assert judge(*ranks, tree).verdict is not Verdict.LEAK


def test_pages_beyond_what_a_record_takes_are_a_leak_of_a_rank() -> None:
    assert judge(_pages(15e6, is_rank=True, process="rank0")).verdict is Verdict.LEAK

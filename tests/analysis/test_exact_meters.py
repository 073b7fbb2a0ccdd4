"""What is in use grows with the leak alone and tells it sooner; blocks of Python are memory."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.findings import Finding
from memdiag.values.measurements import Role, Series, Unit
from memdiag.values.verdict import Verdict


def _steps(level: float, rate: float, steps: int, noise: float, step: float = 1.0) -> np.ndarray:
    y = level + rate * np.arange(steps) + np.random.default_rng(4).normal(0, noise, steps)
    return np.round(y / step) * step


def _found(role: Role, steps: int) -> Finding:
    return judge(series_of(_steps(170e6, 1024, steps, 900), role=role, process="main")).series[0]


@pytest.mark.parametrize(("steps", "verdict"), [(100, Verdict.INCONCLUSIVE), (200, Verdict.LEAK)])
def test_a_kilobyte_per_step_in_use_is_a_leak_within_200_steps(
    steps: int, verdict: Verdict
) -> None:
    assert _found(Role.IN_USE, steps).verdict is verdict


def test_pages_that_grow_as_long_may_be_a_pool_that_fills() -> None:
    assert _found(Role.RESIDENT, 200).verdict is Verdict.INCONCLUSIVE


def _blocks(rate: float, steps: int = 840) -> Series:
    y = _steps(1.05e6, rate, steps, 0.3, step=1.0)
    return series_of(y, role=Role.OBJECTS, metric="python_blocks", process="main", unit=Unit.COUNT)


def test_small_objects_are_a_leak_once_they_are_more_than_the_lists_of_tuples_take() -> None:
    assert judge(_blocks(11.3, 800)).series[0].verdict is Verdict.LEAK
    assert judge(_blocks(11.3, 600)).series[0].verdict is Verdict.INCONCLUSIVE
    assert judge(_blocks(45.0, 200)).series[0].verdict is Verdict.LEAK


def test_a_line_with_an_early_jump_is_no_ceiling_that_was_nearly_reached() -> None:
    """Something is imported at step 24: a curve fits better, whose ceiling lies far above."""
    at = np.arange(3, 800, 4)
    y = 1_049_000 + 12.0 * at + np.where(at >= 24, 226.0, 0.0)
    y += np.random.default_rng(1).normal(0, 3, len(at))
    series = series_of(
        np.round(y),
        x=at.astype(float),
        role=Role.OBJECTS,
        metric="python_blocks",
        process="main",
        unit=Unit.COUNT,
    )
    assert judge(series).series[0].verdict is Verdict.LEAK


@pytest.mark.parametrize(
    ("rate", "verdict"), [(11.3, Verdict.LEAK), (6.5, Verdict.STABLE), (3.0, Verdict.STABLE)]
)
def test_blocks_of_python_that_accumulate_are_a_leak_of_memory(
    rate: float, verdict: Verdict
) -> None:
    """Small objects come out of arenas of 1 MB: pages have one more every thousand steps."""
    pages = np.full(840, 320e6) + np.random.default_rng(5).normal(0, 2e3, 840)
    found = judge(series_of(pages, process="main"), _blocks(rate))
    assert found.verdict is verdict


def test_tuples_kept_for_use_again_are_no_leak_of_blocks() -> None:
    """Nine backward passes a step fill the free list of 2,000 within 222 steps."""
    blocks = series_of(
        _steps(1.05e6, 9.0, 220, 0.3),
        role=Role.OBJECTS,
        metric="python_blocks",
        process="main",
        unit=Unit.COUNT,
    )
    pages = np.full(220, 320e6) + np.random.default_rng(5).normal(0, 2e3, 220)
    assert judge(series_of(pages, process="main"), blocks).verdict is Verdict.STABLE


@pytest.mark.parametrize(("pages_rate", "teller"), [(18e3, "rss_bytes"), (60e3, "malloc_bytes")])
def test_small_objects_beside_malloc_have_the_rate_of_the_pages(
    pages_rate: float, teller: str
) -> None:
    """Forty of them take 20 KB at most: pages that rise by more rise by holes."""
    pages = series_of(_steps(340e6, pages_rate, 1500, 4e4), process="main", metric="rss_bytes")
    malloc = series_of(
        _steps(117e6, 700.0, 1500, 300), role=Role.IN_USE, process="main", metric="malloc_bytes"
    )
    blocks = series_of(
        _steps(1.05e6, 41.0, 1500, 0.3),
        role=Role.OBJECTS,
        metric="python_blocks",
        process="main",
        unit=Unit.COUNT,
    )
    found = judge(pages, malloc, blocks)
    assert found.verdict is Verdict.LEAK
    assert found.deciding is not None
    assert found.deciding.metric == teller

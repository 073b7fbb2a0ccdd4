"""Programs without steps: what they hold grows at a constant pace in time, or does not."""

from __future__ import annotations

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.measurements import AxisKind, Role, Series
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

MB = 1e6
SECONDS = np.arange(0, 55, 0.75)


def held(y: np.ndarray, x: np.ndarray = SECONDS, role: Role = Role.IN_USE) -> Series:
    metric = "malloc_bytes" if role is Role.IN_USE else "rss_bytes"
    return series_of(y, x, kind=AxisKind.SECONDS, role=role, metric=metric)


def scatter(size: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, len(SECONDS))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_held_at_a_constant_pace_is_a_leak_within_a_minute(seed: int) -> None:
    """A list of arrays, in numpy."""
    y = 40 * MB + 0.6 * MB * SECONDS + scatter(0.1 * MB, seed)
    assert judge(held(y)).verdict is Verdict.LEAK


def test_readings_that_are_dense_at_first_do_not_change_the_pace() -> None:
    """Of a program that speeds up by a fifth once less runs beside it."""
    x = np.concatenate((np.arange(2.5, 10.5, 0.25), np.arange(11, 56)))
    grown = np.cumsum(np.diff(x, prepend=0) * np.interp(x, [8, 45], [0.58, 0.715]))
    y = MB * (40 + grown + np.random.default_rng(0).normal(0, 0.02, len(x)))
    assert judge(held(y, x)).verdict is Verdict.LEAK


def test_a_transient_buffer_above_it_hides_nothing() -> None:
    """Every third reading meets one of 6 MB."""
    y = 40 * MB + 0.6 * MB * SECONDS + 6.4 * MB * (np.arange(len(SECONDS)) % 3 == 1)
    assert judge(held(y)).verdict is Verdict.LEAK


def test_a_ramp_of_pages_is_not_yet_one() -> None:
    """A dataset that is touched for the first time looks like this."""
    y = 40 * MB + 0.6 * MB * SECONDS + scatter(0.1 * MB)
    assert judge(held(y, role=Role.RESIDENT)).verdict is Verdict.INCONCLUSIVE


def test_half_a_minute_is_not_enough() -> None:
    few = SECONDS < 30
    y = (40 * MB + 0.6 * MB * SECONDS + scatter(0.1 * MB))[few]
    assert judge(held(y, SECONDS[few])).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("seed", range(4))
def test_a_cache_that_fills_ever_more_slowly_is_no_leak(seed: int) -> None:
    """Fewer and fewer words are new."""
    y = 40 * MB + 30 * MB * (1 - np.exp(-SECONDS / 40)) + scatter(0.1 * MB, seed)
    assert judge(held(y)).verdict is not Verdict.LEAK


def test_a_queue_that_is_full_after_half_of_the_run_is_no_leak() -> None:
    y = 40 * MB + 0.6 * MB * np.minimum(SECONDS, 27) + scatter(0.02 * MB)
    assert judge(held(y)).verdict in STABLE_OR_WARMUP

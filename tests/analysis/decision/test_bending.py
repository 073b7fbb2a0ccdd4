"""A climb that bends all along has a ceiling, however far."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from analysis.decision.builders import MB, asked, every
from memory_series import judge, noisy

from memdiag.values.verdict import Side, Verdict

U = np.arange(200) / 200


def test_a_climb_that_bends_is_no_leak() -> None:
    """A vocabulary that meets new words, of which a third is still to come."""
    found = asked("bending", every(10, noisy(2e9 + 6e9 * (1 - np.exp(-1.5 * U)))))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_a_line_of_the_same_rise_is_one() -> None:
    """A list of batches."""
    found = asked("bending", every(10, noisy(2e9 + 4.7e9 * U)))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


N, MANY = np.arange(60.0), np.arange(120.0)


def verdicts(part: np.ndarray) -> Counter[Verdict]:
    """Of 20 runs that rise from 9 GB by these parts of 6 GB, with noise."""
    noise = [np.random.default_rng(seed).normal(0, 25 * MB, len(N)) for seed in range(20)]
    return Counter(judge(every(25, 9e9 + 6e9 * part + one)).verdict for one in noise)


@pytest.mark.parametrize("part", [np.log1p(N / 3) / np.log1p(20), np.sqrt(N / 60)])
def test_growth_that_slows_down_for_ever_is_left_open(part: np.ndarray) -> None:
    """A memory pool that meets new sizes ever more rarely: each part of it is nearly a line."""
    found = verdicts(part)
    assert found[Verdict.INCONCLUSIVE] >= 18
    assert found[Verdict.LEAK] + found[Verdict.INCONCLUSIVE] == 20


def test_a_leak_after_a_warm_up_is_found() -> None:
    found = verdicts((1 - np.exp(-N / 6) + N / 60) / 2)
    assert found[Verdict.LEAK] >= 18
    assert found[Verdict.LEAK] + found[Verdict.INCONCLUSIVE] == 20


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(14 * np.sqrt(MANY / 120), Verdict.INCONCLUSIVE, id="square root"),
        pytest.param(5 * np.log1p(MANY / 6), Verdict.INCONCLUSIVE, id="logarithm"),
        pytest.param(MANY / 9, Verdict.LEAK, id="even steps"),
    ],
)
def test_steps_that_become_rarer_are_left_open(steps: np.ndarray, expected: Verdict) -> None:
    """An allocator that takes whole blocks, for ever fewer new sizes."""
    assert judge(every(20, 4.3e9 + 261 * MB * np.floor(steps))).verdict is expected

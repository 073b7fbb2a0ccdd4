"""Pages that rise with a leaking exact meter leak; a stable level hides it."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every, malloc, python_blocks
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict

STEPS = np.arange(800.0)
LEAKING = malloc(noisy(120e6 + 3e3 * STEPS, 1e-5))


def test_pages_that_follow_a_leak_of_malloc_leak() -> None:
    """Two arenas of 1 MB, which alone show no growth; the recording is a leak in any case, by
    malloc."""
    pages = noisy(350e6 + 1e6 * np.floor(3e3 * STEPS / 1e6), 1e-4)
    found = asked("exact_meter", every(1, pages), LEAKING)
    assert found.sides == {Side.ACROSS}
    assert found.of_first == (Verdict.LEAK, Verdict.STABLE)


def test_pages_that_follow_a_leak_of_python_objects_leak() -> None:
    """40 objects of 80 bytes each step. The recording is a leak in any case, by the blocks."""
    objects = python_blocks(np.round(6e5 + 40 * STEPS))
    pages = noisy(50e6 + 1e6 * np.floor(3200 * STEPS / 1e6), 1e-4)
    found = asked("exact_meter", every(1, pages), objects)
    assert found.of_first == (Verdict.LEAK, Verdict.WARMUP)
    level = asked("exact_meter", every(1, noisy(np.full(800, 50e6), 1e-4)), objects)
    assert level.of_first == (Verdict.STABLE, Verdict.STABLE)


def test_pages_that_hide_it_are_not_stable() -> None:
    """What leaks fills holes that were there before."""
    found = asked("exact_meter", every(1, noisy(np.full(800, 350e6), 1e-4)), LEAKING)
    assert found.of_first == (Verdict.INCONCLUSIVE, Verdict.STABLE)


def test_pages_beside_a_stable_malloc_are() -> None:
    """A training that keeps nothing."""
    stable = malloc(noisy(np.full(800, 120e6), 1e-5))
    found = asked("exact_meter", every(1, noisy(np.full(800, 350e6), 1e-4)), stable)
    assert not found.sides
    assert found.of_first == (Verdict.STABLE, Verdict.STABLE)

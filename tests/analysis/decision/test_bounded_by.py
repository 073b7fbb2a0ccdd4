"""What holds a memory does not grow: then it cannot either."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import MB, asked, every, malloc, python_blocks
from memory_series import noisy

from memdiag.values.measurements import Role
from memdiag.values.verdict import Side, Verdict

WITHIN = every(1, noisy(300 * MB + 5 * MB * np.arange(60.0)), role=Role.UNIQUE, metric="uss_bytes")


def test_private_pages_within_stable_resident_ones_are_no_doubt() -> None:
    """Pages that were shared become private as workers leave."""
    found = asked("bounded_by", WITHIN, every(1, noisy(np.full(60, 4e9))))
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)
    assert found.of_first == (Verdict.WARMUP, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(("stride", "verdict"), [(1, Verdict.WARMUP), (20, Verdict.LEAK)])
def test_leak_of_private_pages_that_were_read_rarely(stride: int, verdict: Verdict) -> None:
    """Pages that are used for the first time at a few steps; USS was read while some were freed."""
    steps = np.arange(0.0, 600, stride)
    pages = noisy(340 * MB + 3 * MB * np.searchsorted([60, 150, 300], steps, side="right"), 1e-4)
    private = 243 * MB + 0.02 * MB * np.arange(0.0, 600, 30)
    found = asked(
        "bounded_by",
        every(30, noisy(private, 1e-4), role=Role.UNIQUE, metric="uss_bytes"),
        every(stride, pages),
    )
    assert found.of_first == (verdict, Verdict.LEAK)


def test_private_pages_within_growing_ones_are_a_doubt() -> None:
    """The start of a training, whose private and resident memory grow alike."""
    whole = every(1, noisy(400 * MB + 5 * MB * np.arange(60.0)))
    found = asked("bounded_by", WITHIN, whole)
    assert not found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize("higher", [0.0, 1.5 * MB])
def test_memory_in_use_that_wanders_below_an_earlier_high(higher: float) -> None:
    """Sessions come and go in pages that the process has had since its start."""
    random, y, at = np.random.default_rng([17, 11]), np.zeros(80), 0.0
    for i in range(80):
        at = 0.95 * at + random.normal(0, 0.31)
        y[i] = 12 * MB + 0.7 * MB * at + (higher if i > 74 else 0.0)
    found = asked("bounded_by", malloc(y), every(1, noisy(np.full(80, 36 * MB), 3e-5, 1)))
    assert bool(found.sides) is not bool(higher)
    if found.sides:
        assert found.of_first == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def in_steps(level: float, gain: float) -> np.ndarray:
    """Sixty readings that rise three times, two of them after the first third."""
    return np.round(level + gain * np.searchsorted([10, 28, 46], np.arange(60), side="right"))


@pytest.mark.parametrize(
    ("objects", "verdict"), [(4000, Verdict.STABLE), (8000, Verdict.INCONCLUSIVE)]
)
def test_pages_that_touch_new_memory_beside_a_few_new_objects(
    objects: int, verdict: Verdict
) -> None:
    """A training whose pages rise by less than 1 MB, while malloc hands out no more."""
    found = asked(
        "bounded_by",
        every(1, noisy(330 * MB + 15_000 * np.arange(60.0), 1e-6)),
        malloc(noisy(np.full(60, 120 * MB), 1e-6)),
        python_blocks(in_steps(1e6, objects)),
    )
    assert found.verdicts == (verdict, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("gain", "verdict"), [(0.2 * MB, Verdict.STABLE), (0.8 * MB, Verdict.INCONCLUSIVE)]
)
def test_memory_in_use_that_gains_little_in_stable_pages(gain: float, verdict: Verdict) -> None:
    """Checkpoints that leave a little more behind now and then."""
    pages = every(1, noisy(np.full(60, 330 * MB), 1e-5))
    found = asked("bounded_by", malloc(in_steps(120 * MB, gain)), pages)
    assert found.verdicts == (verdict, Verdict.INCONCLUSIVE)

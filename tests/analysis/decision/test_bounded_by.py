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


@pytest.mark.parametrize(("a_step", "verdict"), [(20, Verdict.STABLE), (200, Verdict.INCONCLUSIVE)])
def test_pages_that_touch_new_memory_beside_a_few_new_objects(
    a_step: int, verdict: Verdict
) -> None:
    """A training whose pages rise by less than 1 MB, while malloc hands out no more."""
    steps = np.arange(60.0)
    found = asked(
        "bounded_by",
        every(1, noisy(330 * MB + 15_000 * steps, 1e-6)),
        malloc(noisy(np.full(60, 120 * MB), 1e-6)),
        python_blocks(noisy(1e6 + a_step * steps, 1e-6)),
    )
    assert found.verdicts == (verdict, Verdict.INCONCLUSIVE)

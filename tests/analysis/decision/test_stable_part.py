"""A coarse meter grows, and the exact one within it does not."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Role, Series
from memdiag.values.verdict import Side, Verdict

STEPS = np.arange(800.0)
RESIDENT = every(1, noisy(2e8 + 0.2 * MB * STEPS))


def private(y: np.ndarray) -> Series:
    return every(1, noisy(y), role=Role.UNIQUE, metric="uss_bytes")


def test_resident_memory_that_grows_by_shared_pages_is_no_leak() -> None:
    """A dataset in a mapped file, which is read from its start to its end."""
    found = asked("stable_part", RESIDENT, private(np.full(800, 6e7)))
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_resident_memory_that_grows_by_private_pages_is_one() -> None:
    """The same dataset, which is decoded and kept."""
    found = asked("stable_part", RESIDENT, private(1e8 + 0.2 * MB * STEPS))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""A plateau at a limit tells nothing of growth."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Limit, Role, Series
from memdiag.values.verdict import Side, Verdict

GROUP = Limit(name="cgroup memory.max", value_bytes=2 * 10**9, roles=frozenset({Role.RESIDENT}))


def climb(top: float) -> Series:
    """From 500 MB to the top within a third of the run."""
    y = 500 * MB + (top - 500 * MB) * np.minimum(np.arange(300) / 100, 1)
    return every(1, noisy(y, 3e-4))


def test_a_plateau_just_below_the_limit_is_not_stable() -> None:
    """A container of 2 GB, whose kernel takes pages back as fast as they come."""
    found = asked("at_limit", climb(1990 * MB), limits=(GROUP,))
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)


def test_a_plateau_with_room_above_it_is() -> None:
    """The same container, and a program that needs less."""
    found = asked("at_limit", climb(1800 * MB), limits=(GROUP,))
    assert not found.sides
    assert found.verdicts == (Verdict.WARMUP, Verdict.WARMUP)

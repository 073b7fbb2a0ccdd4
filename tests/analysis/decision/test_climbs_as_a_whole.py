"""A run whose averages climb along a line is not stable because its last part is level."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every

from memdiag.model import Series
from memdiag.verdicts import Side, Verdict


def server(leaks: bool) -> Series:
    """5 GB in which caches of 0 to 12 MB are filled and stay, or are given back at once."""
    random = np.random.default_rng(7)
    fills = np.where(random.random(400) < 0.06, random.integers(1, 7, 400) * 2 * MB, 0.0)
    fills[-40:] = 0
    return every(5, 5.24e9 + (np.cumsum(fills) if leaks else fills))


def test_small_uneven_steps_all_along_are_not_stable() -> None:
    found = asked("climbs_as_a_whole", server(leaks=True))
    assert Side.AGAINST_CALM in found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.STABLE)


def test_what_is_given_back_is() -> None:
    found = asked("climbs_as_a_whole", server(leaks=False))
    assert not found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)

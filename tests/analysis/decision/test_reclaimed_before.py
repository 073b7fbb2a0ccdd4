"""As much was given back before: the next rise of a cycle looks the same."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict

GROWING = 4e9 + np.concatenate([np.zeros(164), np.linspace(0, 4e8, 140)])


def test_growth_no_larger_than_a_fall_before_is_no_leak() -> None:
    """A checkpoint took 400 MB for four readings, and as much comes again, slowly."""
    y = GROWING.copy()
    y[80:84] += 4e8
    found = asked("reclaimed_before", every(10, noisy(y, 0.004)))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_growth_of_what_never_fell_is_one() -> None:
    """The same growth, without the checkpoint."""
    found = asked("reclaimed_before", every(10, noisy(GROWING, 0.004)))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""Growth out of a dip only comes back to where the level had been."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def series(dip: float) -> Series:
    """A level of 4 GB, and a rise of `dip` + 120 MB that begins so far below it."""
    rise = np.linspace(4e9 - dip, 4.12e9, 160)
    return every(10, noisy(np.concatenate([np.full(60, 4e9), rise])))


def test_memory_that_comes_back_after_an_evaluation_is_no_leak() -> None:
    """A model in evaluation frees 200 MB, which training takes again, and a little more."""
    found = asked("return_to_level", series(2e8))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_a_rise_beyond_the_level_is_one() -> None:
    """The same end, without the evaluation."""
    found = asked("return_to_level", series(0.0))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

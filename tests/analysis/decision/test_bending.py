"""A climb that bends all along has a ceiling, however far."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

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

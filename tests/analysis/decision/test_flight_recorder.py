"""Torch's record of the last collectives grows until it is full."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, malloc
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def rank(per_step: float) -> Series:
    y = noisy(170e6 + per_step * np.arange(1700.0), 2e-6)
    return malloc(y, process="rank0", is_rank=True)


def test_a_record_that_fills_is_no_leak() -> None:
    """Two collectives a step, of 350 bytes each."""
    found = asked("flight_recorder", rank(700))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_more_than_the_record_takes_is_one() -> None:
    """Gradients of a small layer, kept at every step."""
    found = asked("flight_recorder", rank(7000))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

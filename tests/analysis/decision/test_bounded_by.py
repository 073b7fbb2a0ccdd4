"""What holds a memory does not grow: then it cannot either."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
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

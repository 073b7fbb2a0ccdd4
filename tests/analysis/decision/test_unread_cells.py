"""A series with many cells that could not be read is not called stable."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict

FLAT = noisy(np.full(200, 500 * MB), 1e-3)


def test_a_flat_series_with_many_unread_cells_is_inconclusive() -> None:
    found = asked("unread_cells", every(1, FLAT, unread_share=0.3))
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.STABLE)


def test_a_flat_series_with_few_unread_cells_is_stable() -> None:
    found = asked("unread_cells", every(1, FLAT, unread_share=0.02))
    assert not found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)

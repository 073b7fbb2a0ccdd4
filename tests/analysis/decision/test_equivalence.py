"""A rise that surely comes to nothing settles a doubt."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def series(rise: float) -> Series:
    """Four million steps; 400 MB come and go at their start, and `rise` bytes come after it."""
    y = np.full(400, 4e9)
    y[50:80] += 4e8
    y[90:] += np.linspace(0, rise, 310)
    return every(10_000, noisy(y, 2e-4))


def test_ten_bytes_a_step_settle_the_doubt_of_what_came_and_went() -> None:
    """Interned names, beside a dataset that was checked once."""
    found = asked("equivalence", series(4e7))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def test_ten_times_as_much_does_not() -> None:
    """A gigabyte in ten million steps: the doubt stays."""
    found = asked("equivalence", series(4e8))
    assert not found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)

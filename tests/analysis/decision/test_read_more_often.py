"""A meter that was hardly read says nothing against another of the same memory that was."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked
from memory_series import noisy, series_of

from memdiag.values.measurements import Role, Series
from memdiag.values.verdict import Side, Verdict


def uss(grown: float) -> Series:
    """Read at the start, and 5 s later: private pages are dear to count."""
    readings = np.array([2e6, 2e6 + grown])
    return series_of(readings, np.array([0.0, 299.0]), role=Role.UNIQUE, metric="uss_bytes")


def test_two_readings_of_private_pages_leave_a_level_process_stable() -> None:
    found = asked("read_more_often", uss(16e6), series_of(noisy(np.full(300, 379e6))))
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def test_beside_pages_that_grow_they_settle_nothing() -> None:
    found = asked("read_more_often", uss(16e6), series_of(noisy(379e6 + 1e6 * np.arange(300))))
    assert not found.sides

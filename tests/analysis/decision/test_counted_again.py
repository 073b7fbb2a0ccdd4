"""RSS of a tree counts a page once per process, its PSS once."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Role, Series
from memdiag.values.verdict import Side, Verdict

RESIDENT = every(1, noisy(900 * MB + 1 * MB * np.arange(400.0), 1e-4), process="tree")


def proportional(y: object) -> Series:
    return every(1, noisy(y, 1e-5), role=Role.PROPORTIONAL, metric="pss_bytes", process="tree")


def test_pages_that_more_and_more_processes_map_are_no_leak() -> None:
    found = asked("counted_again", RESIDENT, proportional(np.full(400, 8e8)))
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_pages_that_are_counted_once_and_grow_as_well_are_one() -> None:
    found = asked("counted_again", RESIDENT, proportional(5e8 + 1 * MB * np.arange(400.0)))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

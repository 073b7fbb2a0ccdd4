"""RSS of a tree counts a page once per process, its PSS once."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Role, Series
from memdiag.values.verdict import Side, Verdict

RESIDENT = every(1, noisy(900 * MB + 1 * MB * np.arange(400.0), 1e-4), process="tree")

LOOKS = every(1, noisy(100 * MB + 1 * MB * np.arange(100.0), 1e-4), process="main")


def proportional(y: object) -> Series:
    return every(1, noisy(y, 1e-5), role=Role.PROPORTIONAL, metric="pss_bytes", process="tree")


def test_pages_that_more_and_more_processes_map_are_no_leak() -> None:
    found = asked("counted_again", RESIDENT, proportional(np.full(400, 8e8)))
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.LEAK)


def test_pages_that_are_counted_once_and_grow_as_well_are_one() -> None:
    found = asked("counted_again", RESIDENT, proportional(5e8 + 1 * MB * np.arange(400.0)))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_a_process_that_looks_at_shared_pages_one_after_the_other_adds_none() -> None:
    found = asked("counted_again", LOOKS, own(5e6), proportional(np.full(100, 8e8)))
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def test_a_process_with_more_and_more_pages_of_its_own_may_leak() -> None:
    grows = own(5e6 + 1 * MB * np.arange(100.0))
    assert not asked("counted_again", LOOKS, grows, proportional(np.full(100, 8e8))).sides


def own(y: object) -> Series:
    unique = noisy(np.broadcast_to(y, 100), 1e-4)
    return every(1, unique, role=Role.UNIQUE, metric="uss_bytes", process="main")

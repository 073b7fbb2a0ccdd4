"""Forked workers copy the pages of their parent: PSS grows and RSS does not."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Role
from memdiag.values.verdict import Side, Verdict

GROWN = 120 * MB + 1 * MB * np.arange(400.0)
PROPORTIONAL = every(
    1, noisy(GROWN, 1e-4), role=Role.PROPORTIONAL, metric="pss_bytes", process="tree"
)


def test_copies_of_shared_pages_are_a_warmup() -> None:
    resident = every(1, noisy(np.full(400, 4e9), 1e-5), process="tree")
    found = asked("lost_sharing", PROPORTIONAL, resident)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.WARMUP, Verdict.LEAK)


def test_growth_of_both_is_a_leak() -> None:
    resident = every(1, noisy(3e9 + GROWN, 1e-5), process="tree")
    found = asked("lost_sharing", PROPORTIONAL, resident)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_a_process_that_other_programs_leave_alone_with_their_libraries_does_not_leak() -> None:
    grown = noisy(19 * MB + 7e3 * np.arange(400.0), 1e-4)
    pages = every(1, noisy(np.full(400, 36 * MB), 1e-5), process="main")
    pss = every(1, grown, role=Role.PROPORTIONAL, metric="pss_bytes", process="main")
    found = asked("lost_sharing", pages, pss)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.LEAK)


def test_rss_that_rose_while_the_program_started_has_not_grown_since() -> None:
    """USS is read rarely, and rises as another program ends that used the same libraries."""
    steps = np.arange(600.0)
    rises = np.where(steps < 60, 4 * MB * steps / 60, 4 * MB)
    pages = every(30, noisy(440 * MB + rises, 2e-4)[::30], process="main")
    private = 318 * MB + 12 * MB * np.arange(11) / 10
    found = asked(
        "lost_sharing",
        every(55, private, role=Role.UNIQUE, metric="uss_bytes", process="main"),
        pages,
    )
    assert found.of_first == (Verdict.WARMUP, Verdict.LEAK)

"""An exact metric decides for the stretch that its readings cover."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every, malloc
from memory_series import noisy

from memdiag.values.measurements import Role
from memdiag.values.verdict import Side, Verdict

STEPS = np.arange(1000.0)
FILLS = 1e9 + 0.1 * MB * np.minimum(STEPS, 500)


def test_what_was_read_until_half_is_no_leak_where_pages_then_rest() -> None:
    """A cache that is full when malloc was last asked."""
    found = asked("read_to_the_end", every(1, noisy(FILLS)), malloc(5e8 + 0.1 * MB * STEPS[:500]))
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.WARMUP, Verdict.LEAK)


def test_it_is_a_leak_where_pages_go_on() -> None:
    pages = every(1, noisy(1e9 + 0.1 * MB * STEPS))
    found = asked("read_to_the_end", pages, malloc(5e8 + 0.1 * MB * STEPS[:500]))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_pages_that_did_not_show_the_growth_say_nothing_of_a_while_without_readings() -> None:
    """Blocks come out of pages that were there from the start."""
    pages = every(1, noisy(np.full(1000, 1e9)))
    found = asked("read_to_the_end", pages, malloc(5e8 + 0.1 * MB * STEPS[:920]))
    assert not found.sides
    assert found.verdicts[1] is Verdict.LEAK
    found = asked("read_to_the_end", pages, malloc(5e8 + 0.1 * MB * STEPS[:500]))
    assert found.sides == {Side.ACROSS}


def test_level_readings_that_end_early_do_not_overrule_what_grew_since() -> None:
    """Private pages, which are dear to count, were last read before the growth began."""
    pages = every(1, noisy(1e9 + 0.5 * MB * np.maximum(STEPS - 600, 0)))
    private = every(1, noisy(np.full(600, 6e8)), role=Role.UNIQUE, metric="uss_bytes")
    found = asked("stable_part", pages, private)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""Pages that grew as memory in use did, and since then no more."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, Asked, asked, every, malloc
from memory_series import noisy

from memdiag.verdicts import Side, Verdict

STEPS = np.arange(600.0)


def beside_a_cache(until: float) -> Asked:
    """A cache fills for 468 steps; the pages grow as fast, until so many."""
    cache = malloc(noisy(120e6 + MB * np.minimum(STEPS, 468), 1e-5))
    pages = noisy(350e6 + 1.1 * MB * np.minimum(STEPS, until), seed=7)
    return asked("settled_malloc", every(1, pages), cache)


def test_pages_of_a_cache_that_is_full_are_no_leak() -> None:
    """They rest for less than a fifth of the run, and what is in use for more."""
    found = beside_a_cache(480)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_pages_that_go_on_after_it_are_one() -> None:
    """Something else than the cache grows as well."""
    found = beside_a_cache(600)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

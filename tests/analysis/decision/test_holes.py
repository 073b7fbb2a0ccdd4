"""Pages that grow by what malloc holds free grow by holes between blocks."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import Asked, asked, every, malloc, python_blocks
from memory_series import noisy

from memdiag.values.measurements import Role
from memdiag.values.verdict import Side, Verdict

LEVEL = np.ones(800)


def beside(free: np.ndarray, grown_bytes: float = 32e6) -> Asked:
    """Pages that grow while all that is in use is level."""
    return asked(
        "holes",
        every(1, noisy(350e6 + grown_bytes / 800 * np.arange(800), 1e-4, 7)),
        malloc(noisy(120e6 * LEVEL, 1e-5, 5)),
        python_blocks(noisy(1.1e6 * LEVEL, 1e-5, 4)),
        every(1, noisy(free, 1e-3, 6), role=Role.HOLES, metric="malloc_free_bytes"),
    )


def test_pages_that_grow_with_free_blocks_are_no_leak() -> None:
    """Batches of all sizes leave gaps that the next one does not fit into."""
    found = beside(20e6 + 3e4 * np.arange(800))
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.LEAK)


def test_pages_that_grow_beside_them_are_one() -> None:
    """A library that maps its memory itself."""
    found = beside(20e6 * LEVEL)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_pages_may_grow_a_little_more_than_free_blocks_that_were_never_touched() -> None:
    """Other memory of the process is touched for the first time, too."""
    free = 6e6 * LEVEL
    assert beside(free, grown_bytes=6.5e6).sides == {Side.ACROSS}
    assert not beside(free, grown_bytes=9e6).sides


def test_blocks_of_python_that_are_read_rarely_may_be_stable() -> None:
    """They are read at every fourth reading of malloc: stable is stable, by however few."""
    read = np.where(np.arange(800) % 50 == 0, noisy(68e3 * LEVEL, 1e-5, 4), np.nan)
    found = asked(
        "holes",
        every(1, noisy(21e6 + 1e3 * np.arange(800), 1e-4, 7)),
        malloc(noisy(5.5e6 * LEVEL, 1e-5, 5)),
        python_blocks(read),
        every(1, noisy(1.2e6 * LEVEL, 1e-3, 6), role=Role.HOLES, metric="malloc_free_bytes"),
    )
    assert found.sides == {Side.ACROSS}

"""Every process of a tree is stable, and they are nearly all of it."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def workers(readings: int) -> list[Series]:
    """Eight loaders of 250 MB, one after the other of which takes two megabytes, once."""
    late = [40 + 95 * number for number in range(8)]
    levels = [250 * MB + 2 * MB * (np.arange(readings) >= at) for at in late]
    return [
        every(1, noisy(y, 1e-5, number), process=f"DataLoader worker {number}")
        for number, y in enumerate(levels)
    ]


def tree(parts: list[Series], more: float) -> Series:
    """All of them, and what is in none."""
    return every(1, more + np.sum([part.y for part in parts], axis=0), process="tree")


def test_a_tree_of_stable_processes_is_no_leak() -> None:
    """Their buffers grow once each, at different times."""
    parts = workers(800)
    found = asked("stable_processes", tree(parts, 0.0), *parts)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.LEAK)


def test_a_tree_with_as_much_beside_them_is_one() -> None:
    """Helpers of which nothing else is known have a third of it."""
    parts = workers(800)
    found = asked("stable_processes", tree(parts, 1e9), *parts)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_a_doubt_about_a_tree_of_stable_processes_is_none() -> None:
    """Three of the loaders have taken theirs, and the next may come."""
    parts = workers(300)
    found = asked("stable_processes", tree(parts, 0.0), *parts)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)

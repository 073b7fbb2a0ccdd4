"""Python keeps freed tuples for use again, up to 2,000 of each length."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, python_blocks
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict


def blocks(per_step: float) -> np.ndarray:
    return noisy(1.05e6 + per_step * np.arange(220.0), 3e-7)


def test_tuples_of_backward_passes_are_no_leak() -> None:
    """Nine backward passes a step leave one each, until the list is full."""
    found = asked("free_list", python_blocks(blocks(9)))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_tuples_of_several_lengths_are_no_leak() -> None:
    """Transformers' Trainer, whose lists are full after 300 steps."""
    found = asked("free_list", python_blocks(blocks(24)))
    assert found.sides == {Side.AGAINST_LEAK}


def test_more_objects_than_the_lists_take_are_one() -> None:
    """Forty metrics a step that are appended to a history."""
    found = asked("free_list", python_blocks(blocks(40)))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_what_rises_by_less_in_the_end_is_none() -> None:
    """A cache has filled, and then lists for tuples do: 5,000 blocks in the last third."""
    rise = 30.0 * np.maximum(np.arange(500.0) - 330, 0)
    found = asked("free_list", python_blocks(noisy(1.05e6 + rise, 3e-7)))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)

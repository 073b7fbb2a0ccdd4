"""A few of the steps that readings move by are no growth."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every

from memdiag.model import Series
from memdiag.verdicts import Side, Verdict

STEP = 20 * MB


def series(rise: float) -> Series:
    """A slow rise, under noise, of readings that move by whole segments of the allocator."""
    y = 4e9 + rise * np.arange(600) / 600
    y += np.random.default_rng(0).normal(0, STEP / 3, 600)
    return every(10, np.round(y / STEP) * STEP)


def test_two_segments_more_are_no_leak() -> None:
    """A pool that needs two or three segments more than at its start."""
    found = asked("allocator_step", series(50 * MB))
    assert Side.AGAINST_LEAK in found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_twenty_segments_more_are_one() -> None:
    """Activations that pile up, a segment every thirty readings."""
    found = asked("allocator_step", series(400 * MB))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

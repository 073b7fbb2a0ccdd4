"""A rest that is short beside the climb before is as likely a pause."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.model import Series
from memdiag.verdicts import Side, Verdict


def climb(readings: int) -> Series:
    """600 MB over eighteen readings, and a level after it."""
    return every(10, noisy(6e9 + 6e8 * np.minimum(np.arange(readings) / 17, 1), 3e-4))


def test_two_level_readings_are_no_plateau() -> None:
    """A loader that waits for its disk, or has read all."""
    found = asked("short_plateau", climb(20))
    assert found.sides == {Side.AGAINST_CALM}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)


def test_sixty_are_one() -> None:
    """The same loader, which had read all."""
    found = asked("short_plateau", climb(80))
    assert not found.sides
    assert found.verdicts == (Verdict.WARMUP, Verdict.WARMUP)

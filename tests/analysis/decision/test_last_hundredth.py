"""What moves in the last readings makes no doubt of what was stable before."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked, every

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict


def series(last: float) -> Series:
    """An interpreter of 15 MB that takes some pages at its start, and `last` bytes at its end."""
    y = 15e6 + 4096.0 * np.minimum(np.repeat(np.arange(4), 75), 2)
    y[-1] += last
    return every(1, y)


def test_a_program_that_prints_its_result_leaves_a_stable_run() -> None:
    """Two hundred pages in the last reading."""
    found = asked("last_hundredth", series(900e3))
    assert Side.FOR_STABLE in found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def test_three_megabytes_more_are_a_doubt() -> None:
    """A table that is built in the last reading: the first of more, perhaps."""
    found = asked("last_hundredth", series(3e6))
    assert not found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE)

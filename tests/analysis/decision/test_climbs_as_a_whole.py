"""A run whose averages climb along a line is not stable because its last part is level."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict

LEVELS = [5242, 5246, 5254, 5254, 5256, 5260, 5260, 5260, 5260, 5262]
LEVELS += [5266, 5270, 5270, 5274, 5276, 5276, 5282, 5282, 5282, 5282]


def server(levels: list[int]) -> Series:
    """A server of 5 GB whose pages are read in steps of 2 MB."""
    return every(5, np.repeat(np.array(levels) * MB, 25))


def test_small_uneven_steps_all_along_are_not_stable() -> None:
    """One per cent in all, and a rest at the end."""
    found = asked("climbs_as_a_whole", server(LEVELS))
    assert Side.AGAINST_STABLE in found.sides
    assert found.verdicts[0] is not Verdict.STABLE


def test_the_same_levels_in_another_order_are() -> None:
    """What was taken is given back."""
    mixed = [*LEVELS[::2], *LEVELS[::-2]]
    found = asked("climbs_as_a_whole", server(mixed))
    assert not found.sides

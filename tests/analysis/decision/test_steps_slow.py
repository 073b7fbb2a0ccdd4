"""Memory that rises in steps, as pools do, and the steps become rarer or smaller."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import MB, asked, every

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict

READINGS = 400


def series(steps_at: list[int], heights_mb: list[float]) -> Series:
    y = np.full(READINGS, 8000.0 * MB)
    for at, height_mb in zip(steps_at, heights_mb, strict=True):
        y[at:] += height_mb * MB
    return every(10, y)


@pytest.mark.parametrize(
    ("steps_at", "heights_mb"),
    [
        pytest.param(
            [10, 20, 32, 46, 63, 84, 110, 142, 182, 232, 295, 373], [500] * 12, id="rarer"
        ),
        pytest.param(
            list(range(10, 400, 35)),
            [900, 800, 700, 610, 530, 460, 400, 350, 300, 260, 230, 200],
            id="smaller",
        ),
        pytest.param(
            [*(10, 20, 32, 46, 63, 84, 110, 142), *(162, 182, 207, 232, 260, 295, 330, 373)],
            [500] * 8 + [20, 500] * 4,
            id="rarer, between treads that rise a little",
        ),
    ],
)
def test_steps_that_slow_down_are_no_leak(steps_at: list[int], heights_mb: list[float]) -> None:
    found = asked("steps_slow", series(steps_at, heights_mb))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


@pytest.mark.parametrize(
    ("steps_at", "heights_mb"),
    [
        pytest.param(list(range(10, 400, 35)), [500] * 12, id="even"),
        pytest.param(
            [4, 8, 12, 16, *range(50, 400, 35)], [900] * 4 + [500] * 10, id="after a warm-up"
        ),
    ],
)
def test_steps_that_go_on_are_a_leak(steps_at: list[int], heights_mb: list[float]) -> None:
    found = asked("steps_slow", series(steps_at, heights_mb))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

"""A collected heap grows until its collector runs."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import asked
from memory_series import noisy, series_of

from memdiag.values.measurements import AxisKind, Role, Series
from memdiag.values.verdict import Side, Verdict


def heap(per_cycle: float) -> Series:
    y = noisy(11e6 + per_cycle * np.arange(40.0), 1e-5)
    return series_of(y, role=Role.COLLECTED_HEAP, metric="heap_bytes", kind=AxisKind.INDEX)


def test_a_heap_that_was_never_collected_is_no_leak() -> None:
    """Sixteen kilobytes of garbage an operation, far below what makes Go collect."""
    found = asked("uncollected_heap", heap(16_400))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_a_heap_at_three_times_its_start_is_one() -> None:
    """Half a megabyte an operation: it would have been collected, had it been garbage."""
    found = asked("uncollected_heap", heap(500_000))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)

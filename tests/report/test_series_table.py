"""The table of series: what is now, and what grows."""

from __future__ import annotations

import numpy as np
from memory_series import judge, noisy, series_of

from memdiag.report.sections.series_table import latest
from memdiag.values.measurements import Role

STEPS = np.arange(1000.0)


def test_a_value_that_is_not_of_now_is_not_shown_as_such() -> None:
    pages = series_of(noisy(np.full(1000, 1e9)), STEPS)
    malloc = series_of(np.full(300, 5e8), STEPS[:300], role=Role.IN_USE, metric="malloc_bytes")
    found = judge(pages, malloc).series
    assert latest(found[0], found) == "1.00 GB"
    assert latest(found[1], found) == "- (700 steps old)"

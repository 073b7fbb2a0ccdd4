"""The median: as numpy's, for whatever it is given."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memdiag.analysis.stats.median import median

READINGS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30)


@given(st.lists(READINGS | st.integers(-(2**40), 2**40), min_size=1, max_size=60))
def test_it_is_that_of_numpy(values: list[float]) -> None:
    assert median(values) == np.median(values)
    assert median(np.array(values)) == np.median(values)


def test_without_values_there_is_none() -> None:
    assert math.isnan(median(np.empty(0)))


def test_a_missing_value_leaves_none() -> None:
    assert math.isnan(median([1.0, math.nan, 2.0, 3.0]))

"""The median: as numpy's, for whatever it is given."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memdiag.analysis.stats.median import mean, median, quantile_of

READINGS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30)


@given(st.lists(READINGS | st.integers(-(2**40), 2**40), min_size=1, max_size=60))
def test_it_is_that_of_numpy(values: list[float]) -> None:
    assert median(values) == np.median(values)
    assert median(np.array(values)) == np.median(values)


def test_without_values_there_is_none() -> None:
    assert math.isnan(median(np.empty(0)))


def test_a_missing_value_leaves_none() -> None:
    assert math.isnan(median([1.0, math.nan, 2.0, 3.0]))


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=80), st.floats(0, 1))
def test_quantiles_and_the_mean_are_those_of_numpy(values, share):
    y = np.array(values)
    assert quantile_of(y, share) == np.quantile(y, share)
    assert mean(y) == y.mean()

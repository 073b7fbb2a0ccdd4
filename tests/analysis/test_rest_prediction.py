"""The length of a rest from which it is more likely the end of growth."""

from __future__ import annotations

import numpy as np
import pytest

from memdiag.analysis.stats.rest_prediction import longest_rest


def test_one_rest_predicts_nothing() -> None:
    assert longest_rest(np.array([7.0])) == 0
    assert longest_rest(np.array([])) == 0


def test_two_predict_their_geometric_mean() -> None:
    """Half of all next rests are longer."""
    assert longest_rest(np.array([4.0, 9.0])) == pytest.approx(6.0, rel=1e-6)


def test_even_rests_predict_the_same() -> None:
    assert longest_rest(np.full(8, 3.0)) == pytest.approx(3.0, rel=1e-9)


def test_the_unit_is_that_of_the_rests() -> None:
    lengths = np.array([1.0, 2.0, 5.0, 2.5])
    assert longest_rest(60 * lengths) == pytest.approx(60 * longest_rest(lengths), rel=1e-9)


@pytest.mark.parametrize("k", [3, 6, 12])
def test_one_in_k_of_log_normal_rests_is_longer(k: int) -> None:
    random = np.random.default_rng(k)
    rests = np.exp(random.normal(2.0, 0.8, (4000, k + 1)))
    longer = np.mean([row[-1] > longest_rest(row[:-1]) for row in rests])
    assert abs(longer - 1 / k) < 4 * np.sqrt(1 / k / 4000)

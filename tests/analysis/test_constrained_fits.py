"""Fits under constraints are those of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, nnls

from memdiag.analysis.stats.constrained_fits import isotonic, non_negative


@pytest.mark.parametrize("number", [1, 2, 3, 10, 1000])
def test_the_closest_rising_sequence_is_scipys(number: int) -> None:
    for seed in range(50):
        random = np.random.default_rng(seed)
        y = random.normal(size=number) + random.choice([-0.1, 0, 0.01]) * np.arange(number)
        y = np.round(y, int(random.integers(1, 8)))  # with ties
        np.testing.assert_allclose(isotonic(y), isotonic_regression(y).x, atol=1e-9)


def test_a_falling_sequence_is_its_mean() -> None:
    y = np.arange(100_000.0, 0, -1)
    np.testing.assert_allclose(isotonic(y), np.full(100_000, y.mean()))


def test_coefficients_are_scipys() -> None:
    for seed in range(500):
        random = np.random.default_rng(seed)
        rows, columns = int(random.integers(1, 200)), int(random.integers(1, 12))
        matrix = random.uniform(size=(rows, columns)) * 10.0 ** random.uniform(-6, 9, columns)
        truth = random.normal(size=columns) * 10.0 ** random.uniform(-3, 6)
        y = matrix @ truth + random.normal(size=rows) * random.choice([0, 1e3, 1e9])
        found, residual = non_negative(matrix, y)
        expected, least = nnls(matrix, y, maxiter=1000)
        assert (found >= 0).all()
        assert residual <= least * (1 + 1e-6) + 1e-9 * np.linalg.norm(y), seed
        if rows > columns:  # else several are closest
            np.testing.assert_allclose(matrix @ found, matrix @ expected, atol=1e-6 * abs(y).max())


@pytest.mark.parametrize(
    ("matrix", "y", "expected"),
    [
        ([[1.0], [1.0]], [-1.0, -2.0], [0.0]),
        ([[0.0], [0.0]], [1.0, 2.0], [0.0]),
        ([[1.0, 1.0], [1.0, 1.0]], [2.0, 2.0], None),  # equal columns
        ([[1.0, 0.0], [0.0, 1.0]], [3.0, -1.0], [3.0, 0.0]),
        ([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_degenerate_cases(matrix: list, y: list, expected: list | None) -> None:
    found, residual = non_negative(np.array(matrix), np.array(y))
    if expected is None:
        assert residual == pytest.approx(0.0, abs=1e-12)
    else:
        assert found.tolist() == expected

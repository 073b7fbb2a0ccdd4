"""A rest at the end is no plateau where growth went on after longer ones."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every

from memdiag.values.measurements import Series
from memdiag.values.verdict import Side, Verdict

AT = (10, 67, 68, 89, 94, 144, 194, 208, 321)


def rests(readings: int) -> Series:
    """Tables of 400 MB that are loaded now and then, with a rest of 113 readings among them."""
    k = np.arange(readings)[:, None]
    tables = 1 - np.exp(-np.maximum(k - np.array(AT), 0) / 8)
    noise = np.random.default_rng(11).normal(0, 15 * MB, readings)
    return every(60, 10e9 + 400 * MB * tables.sum(axis=1) + noise)


def test_a_rest_no_longer_than_one_before_is_not_stable() -> None:
    """The run ends seventy readings after a table."""
    found = asked("pause", rests(400))
    assert Side.AGAINST_STABLE in found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)


def test_a_rest_of_half_the_run_is() -> None:
    """The same run, with all tables there for long."""
    found = asked("pause", rests(700))
    assert not found.sides
    assert found.verdicts == (Verdict.WARMUP, Verdict.WARMUP)


def test_two_readings_after_a_climb_are_no_plateau() -> None:
    climb = [812, 934, 1051, 1049, 1170, 1291, 1290]
    found = asked("pause", every(30, np.array(climb) * MB))
    assert Side.AGAINST_STABLE in found.sides
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.WARMUP)

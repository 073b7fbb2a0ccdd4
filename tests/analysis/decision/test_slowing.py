"""Growth that comes to less each time is the end of a warm-up."""

from __future__ import annotations

from collections import Counter

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import judge, series_of

from memdiag.values.measurements import AxisKind, Series
from memdiag.values.verdict import Side, Verdict


def epochs(*gained_mb: float) -> Series:
    y = 6e9 + MB * np.cumsum([0.0, *gained_mb])
    return series_of(y, kind=AxisKind.EPOCH)


def test_epochs_that_add_less_each_time_are_no_leak() -> None:
    """A cache of decoded images meets fewer new ones in each epoch."""
    found = asked("slowing", epochs(91, 82, 83, 71, 58, 60, 63, 53, 30, 17))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_epochs_that_add_the_same_are_one() -> None:
    """Predictions of each epoch that are kept."""
    found = asked("slowing", epochs(60, 60, 60, 60, 60, 60))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


N = np.arange(60.0)


def verdicts(part: np.ndarray) -> Counter[Verdict]:
    """Of 20 runs that rise from 9 GB by these parts of 6 GB, with noise."""
    noise = [np.random.default_rng(seed).normal(0, 25 * MB, len(N)) for seed in range(20)]
    return Counter(judge(every(25, 9e9 + 6e9 * part + one)).verdict for one in noise)


def test_growth_by_the_logarithm_of_the_steps_is_mostly_left_open() -> None:
    """A memory pool that meets new sizes ever more rarely: each part of it is nearly a line."""
    found = verdicts(np.log1p(N / 3) / np.log1p(20))
    assert found[Verdict.INCONCLUSIVE] >= 14
    assert found[Verdict.LEAK] + found[Verdict.INCONCLUSIVE] == 20


def test_a_leak_after_a_warm_up_is_mostly_found() -> None:
    found = verdicts((1 - np.exp(-N / 6) + N / 60) / 2)
    assert found[Verdict.LEAK] >= 14
    assert found[Verdict.LEAK] + found[Verdict.INCONCLUSIVE] == 20

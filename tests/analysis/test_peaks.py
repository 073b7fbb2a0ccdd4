"""The warning of peaks that rise over a level floor."""

from __future__ import annotations

import numpy as np
from memory_series import judge, series_of

from memdiag.values.findings import Finding
from memdiag.values.verdict import Verdict

MB = 1e6


def spikes(heights: np.ndarray, seed: int = 0) -> Finding:
    """A floor of 1 GB and every 20 samples a spike of the given height."""
    y = np.full(20 * len(heights), 1000 * MB)
    y[10::20] += heights
    y[11::20] += heights
    y += np.random.default_rng([5, seed]).normal(0, MB, len(y))
    return judge(series_of(y)).series[0]


def test_spikes_that_reach_higher_each_time_are_warned_of_and_no_leak() -> None:
    found = spikes(200 * MB + 10 * MB * np.arange(30))
    assert found.peaks_grow
    assert found.verdict is Verdict.STABLE


def test_spikes_of_random_heights_are_hardly_ever_warned_of() -> None:
    warned = [
        spikes(MB * np.random.default_rng([6, i]).uniform(100, 400, 30), i).peaks_grow
        for i in range(60)
    ]
    assert sum(warned) <= 1


def test_peaks_that_have_settled_are_not_warned_of() -> None:
    assert not spikes(MB * np.minimum(100 + 40 * np.arange(30.0), 400)).peaks_grow


def test_a_few_spikes_are_too_few_to_warn_of() -> None:
    assert not spikes(MB * np.array([100, 150, 200, 250, 300, 350])).peaks_grow


def test_a_leaking_floor_with_spikes_is_a_leak_and_no_warning() -> None:
    y = 1000 * MB + MB * np.arange(3000.0)
    y[10::20] += 300 * MB
    y[11::20] += 300 * MB
    found = judge(series_of(y + np.random.default_rng(7).normal(0, MB, 3000))).series[0]
    assert found.verdict is Verdict.LEAK
    assert not found.peaks_grow

"""Memory that a phase holds in passing: whether its events agree on how much."""

from __future__ import annotations

import numpy as np

from memdiag.analysis.attribution.transient_phase_memory import without_transient


def cycles(heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(readings, codes): one sample of a phase that holds `heights` in passing, then two of the
    base, over and over; memory creeps up by 1 per cycle."""
    random = np.random.default_rng(3)
    codes = np.tile([1, 0, 0], len(heights))
    kept = np.repeat(np.arange(len(heights)), 3)
    held = np.where(codes == 1, np.repeat(heights, 3), 0.0)
    return 100 + kept + held + 0.02 * random.normal(size=len(codes)), codes


def test_heights_that_differ_by_far_more_than_the_bases_own_noise_are_not_even() -> None:
    y, codes = cycles(10 * (1 + 0.2 * np.random.default_rng(1).normal(size=30)))
    _, even, plain = without_transient(y, codes)
    assert not even[codes == 1].any()
    assert even[codes == 0].all()
    assert plain[codes == 0].all()


def test_the_usual_height_is_taken_off_where_all_events_agree() -> None:
    y, codes = cycles(np.full(30, 10.0))
    settled, even, _ = without_transient(y, codes)
    assert even.all()
    assert np.ptp(settled - np.repeat(np.arange(30), 3)) < 1.5

"""Peaks that rise over a level floor: spikes and sawteeth that reach higher each time."""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.case import Decision
from memdiag.analysis.policy import Policy
from memdiag.analysis.preprocessing.prepare import Prepared
from memdiag.analysis.stats.changepoint import bins
from memdiag.analysis.stats.median import median
from memdiag.analysis.stats.slope_test import trend
from memdiag.values.verdict import Verdict


def peaks_grow(decision: Decision, prepared: Prepared, policy: Policy) -> bool:
    """Return True if the highest reading of each cycle rises, where the floor does not.

    Of the cycles since the floor became level. The rise has to pass the test for growth, has to
    be seen between the first and the middle third as well as between the middle and the last, and
    has to matter against the level.
    """
    if decision.verdict is Verdict.LEAK or prepared.sign < 0 or not len(prepared.x):
        return False
    if decision.trend is not None and decision.trend.p_growth < policy.common.alpha:
        return False
    peak_x, all_peaks = prepared.peak_x, prepared.peaks
    if not len(peak_x) and prepared.tops is not prepared.all_y:  # peaks within the steps
        tops = bins(prepared.all_x, prepared.tops, policy.segmentation.bins)
        peak_x, all_peaks = tops.x, tops.y
    since = peak_x >= prepared.x[decision.tail]
    x, peaks = peak_x[since], all_peaks[since]
    if len(peaks) < policy.common.blocks or not x[-1] > x[0]:
        return False
    fitted = trend(x, peaks, prepared.noise)
    rise = fitted.slope * float(x[-1] - x[0])
    if (
        fitted.p_growth >= policy.common.alpha
        or rise <= policy.common.stable_growth * prepared.level
    ):
        return False
    thirds = 3  # exact: see above
    first, middle, last = (median(part) for part in np.array_split(peaks, thirds))
    return first < middle < last

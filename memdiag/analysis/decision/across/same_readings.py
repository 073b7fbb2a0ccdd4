"""Series that have the same readings: a share of memory in percent, a peak that is always so much
more than the level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.across.series_set import Changes, SeriesSet, name
from memdiag.analysis.decision.case import Rule
from memdiag.values.findings import Finding
from memdiag.values.verdict import STABLE_OR_WARMUP, Argument, Reason

if TYPE_CHECKING:
    from memdiag.analysis.policy import Common
    from memdiag.values.measurements import Floats, Series

_FLOAT_ERROR = 1e-9  # exact: more than the error of a sum of floats, relative to its terms


@Rule
def same_readings(finding: Finding, series: SeriesSet) -> tuple[Argument, Changes] | None:
    """Another series of the process that does not grow has the same readings but for a factor and
    a constant, within the rounding of this one.

    Such series have one verdict: that of the one that is read more finely.
    """
    own = _recorded(finding, series)
    if own is None:
        return None
    for other in series.findings:
        is_beside = (other.process, other.axis) == (finding.process, finding.axis)
        if not is_beside or other.verdict not in STABLE_OR_WARMUP:
            continue
        theirs = _recorded(other, series)
        if theirs is not None and _are_same(own, theirs, series.policy.common):
            argument = Argument(
                text="it has the same readings but for a factor and a constant",
                against=name(other),
                reason=Reason.OVERRULED,
                verdict=other.verdict,
            )
            return argument, {"confidence": other.confidence}
    return None


def _recorded(finding: Finding, series: SeriesSet) -> Series | None:
    own = (finding.process, finding.metric)
    return next((s for s in series.recorded if (s.process, s.metric) == own), None)


def _are_same(coarse: Series, fine: Series, common: Common) -> bool:
    """Return True if `coarse` is `a * fine + b`, a > 0, within its own rounding (least squares)."""
    x, y = _known(coarse)
    other_x, z = _known(fine)
    few = max(common.few_samples, (1 - common.slight) * len(y))
    if not (np.array_equal(x, other_x) and (np.diff(x) > 0).all()):  # not of the same lines
        _, at, other_at = np.intersect1d(x, other_x, return_indices=True)
        y, z = y[at], z[other_at]
    if len(y) < few or not np.ptp(z) or not np.ptp(y):
        return False
    z = (z - z.mean()) / np.ptp(z)
    factor = float(z @ (y - y.mean())) / float(z @ z)
    off = np.abs(y - y.mean() - factor * z)
    rounding = max(coarse.resolution, _FLOAT_ERROR * float(np.abs(y).max()))
    levels = len(np.unique(y))
    return factor > 0 and levels > common.fewest and bool((off <= rounding).all())


def _known(series: Series) -> tuple[Floats, Floats]:
    """(x, y) of its readings."""
    x, y = np.asarray(series.x), np.asarray(series.y)
    known = np.isfinite(x) & np.isfinite(y)
    return x[known], y[known]

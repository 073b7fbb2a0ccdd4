"""Records of a fixed length: growth by equal amounts, until they are full.

torch keeps the last 2,000 collectives of each rank of a distributed job, to show them when one
hangs. At one a step, malloc in use grows for 2,000 steps, longer than nearly all warm-ups last, and
then no more. By its course alone that is a leak; but it is known how much it comes to.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memdiag.analysis.classification import Classified
from memdiag.analysis.prepare import Prepared
from memdiag.findings import Reason, Verdict
from memdiag.model import Role, Series
from memdiag.policy import Policy


def unless_filling(
    classified: Classified, prepared: Prepared, series: Series, policy: Policy
) -> Classified:
    """The verdict, or INCONCLUSIVE where a rank's growth is no more than such a record takes."""
    is_ours = series.is_rank and series.role is Role.IN_USE
    if classified.verdict is not Verdict.LEAK or not is_ours or classified.trend is None:
        return classified
    first = int(np.searchsorted(prepared.x, prepared.x[-1] - classified.span_x))
    grown = float(prepared.y[-1] - prepared.y[min(first, classified.tail) :].min())
    left = policy.collectives_bytes - grown
    if left <= 0:
        return classified
    slope = classified.trend.slope
    return replace(
        classified,
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.FILLING,
        score=0.9,
        need_x=left / slope if slope > 0 else None,
    )

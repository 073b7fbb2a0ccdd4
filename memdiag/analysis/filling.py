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

# What the record takes of each meter: pages come in arenas and huge ones, of 2 MB each.
_TAKES = {Role.IN_USE: 1.0, Role.RESIDENT: 2.0, Role.UNIQUE: 2.0, Role.PROPORTIONAL: 2.0}


def unless_filling(
    classified: Classified, prepared: Prepared, series: Series, ranks: int, policy: Policy
) -> Classified:
    """The verdict, or INCONCLUSIVE where a rank's growth is no more than such a record takes.

    ranks: how many there are in the recording; the tree of processes has a record of each.
    """
    records = ranks if series.process == "tree" else int(series.is_rank)
    room = records * policy.collectives_bytes * _TAKES.get(series.role, 0.0)
    if classified.verdict is not Verdict.LEAK or room == 0 or classified.trend is None:
        return classified
    first = int(np.searchsorted(prepared.x, prepared.x[-1] - classified.span_x))
    grown = float(prepared.y[-1] - prepared.y[min(first, classified.tail) :].min())
    left = room - grown
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

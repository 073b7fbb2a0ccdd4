"""A plateau at a limit is no plateau: what could not have gone higher tells nothing of growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memdiag.analysis.classification import CALM, Classified
from memdiag.analysis.prepare import Prepared
from memdiag.findings import Reason, Verdict
from memdiag.model import Limit, Role, Series, Unit
from memdiag.policy import Policy

# Memory that programs take whole at their start to deal out themselves: full from the first
# reading on is how they work, and no sign of growth.
_TAKEN_WHOLE = frozenset({Role.DEVICE, Role.DEVICE_RESERVED})
_WHOLE_PERCENT = 100.0


def unless_at_limit(
    classified: Classified,
    prepared: Prepared,
    series: Series,
    limits: Sequence[Limit],
    policy: Policy,
) -> Classified:
    """The verdict, or INCONCLUSIVE where a calm series stays where a limit keeps it.

    limits: those of the recording; a share of the machine's or a device's memory in percent has
    its own, 100.
    """
    if classified.verdict not in CALM or prepared.sign < 0 or not len(prepared.y):
        return classified
    if prepared.role in _TAKEN_WHOLE and classified.verdict is Verdict.STABLE:
        return classified
    level = float(np.median(prepared.y[classified.tail :]))
    if not any(
        abs(level - ceiling) <= policy.at_limit_share * ceiling
        for ceiling in _ceilings(series, limits)
    ):
        return classified
    return replace(classified, verdict=Verdict.INCONCLUSIVE, reason=Reason.AT_LIMIT, score=0.9)


def _ceilings(series: Series, limits: Sequence[Limit]) -> list[float]:
    if series.unit is Unit.PERCENT:
        return [_WHOLE_PERCENT]
    if series.unit is not Unit.BYTES:
        return []
    return [
        float(limit.value_bytes)
        for limit in limits
        if series.role in limit.roles and limit.metric in {"", series.metric}
    ]

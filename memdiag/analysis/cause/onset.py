"""When a leak began: by its cause, whose sizes are known from the first walk on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memdiag.analysis.policy import Policy
from memdiag.values.findings import Finding, GrowthCause, Interval
from memdiag.values.measurements import AxisKind


def with_onset(
    findings: Sequence[Finding], decided_by: int | None, held: GrowthCause | None, policy: Policy
) -> tuple[Finding, ...]:
    """The findings; that of the leak begins where the place that makes most of it began to grow.

    Readings show that less exactly: to the distance of two of them, and later if growth comes in
    steps. Only if memory has grown at about the rate of the leak since then, as it has not where a
    warm-up lies between.
    """
    found = tuple(findings)
    first = next(iter(held.culprits), None) if held is not None else None
    if decided_by is None or first is None or first.since_step is None:
        return found
    finding, common, since_x = found[decided_by], policy.common, float(first.since_step)
    onset, rate = finding.onset_x, finding.growth_per_x
    is_early = finding.axis.kind is AxisKind.STEP and onset is not None and since_x < onset.value
    if not is_early or rate is None or first.share < common.most or since_x < finding.first_x:
        return found
    x, y = np.array(finding.trace).T
    rise = float(y[-1] - np.interp(since_x, x, y)) / (finding.last_x - since_x)
    if abs(rise - rate.value) > common.short_share * rate.value:
        return found
    known = replace(finding, onset_x=Interval.around(since_x))
    return (*found[:decided_by], known, *found[decided_by + 1 :])

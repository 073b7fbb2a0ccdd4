"""A plateau at a limit is not a plateau: what could not have gone higher shows nothing of growth.

Device memory that programs allocate whole at their start, to manage it themselves, is full from the
first reading on: that is how they work, and not a sign of growth.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.analysis.stats.median import median
from memdiag.values.measurements import Role, Unit
from memdiag.values.verdict import Argument, Reason, Verdict

_ALLOCATED_WHOLE = frozenset({Role.DEVICE, Role.DEVICE_RESERVED})
_WHOLE_PERCENT = 100.0  # exact: a hundred percent


@Rule
def at_limit(case: Case, window: Window) -> Argument | None:
    """A plateau at a limit of the recording is not a plateau: it could not have gone higher.

    A share of memory in percent has its own limit.
    """
    prepared = case.prepared
    if prepared.sign < 0 or not len(prepared.y):
        return None
    if prepared.role in _ALLOCATED_WHOLE and case.so_far is Verdict.STABLE:
        return None
    level = median(prepared.y[window.first_sample :])
    for limit in _limits(case):
        if abs(level - limit) <= case.policy.common.stable_growth * limit:
            return Argument(
                text="it stays at {level_y} where a limit of {limit_y} stops growth",
                numbers={"level_y": level, "limit_y": limit},
                reason=Reason.AT_LIMIT,
            )
    return None


def _limits(case: Case) -> list[float]:
    prepared = case.prepared
    if prepared.unit is Unit.PERCENT:
        return [_WHOLE_PERCENT]
    if prepared.unit is not Unit.BYTES:
        return []
    return [
        float(limit.value_bytes)
        for limit in case.context.limits
        if prepared.role in limit.roles and limit.metric in {"", prepared.metric}
    ]

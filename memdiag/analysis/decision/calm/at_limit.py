"""A plateau at a limit is no plateau: what could not have gone higher tells nothing of growth.

Device memory that programs take whole at their start, to deal out themselves, is full from the
first reading on: that is how they work, and no sign of growth.
"""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.measurements import Role, Unit
from memdiag.values.verdict import Reason, Verdict

_TAKEN_WHOLE = frozenset({Role.DEVICE, Role.DEVICE_RESERVED})
_WHOLE_PERCENT = 100.0  # exact: a hundred percent


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to calm at one of the recording's limits; a share of memory in percent has its own."""
    prepared = case.prepared
    if prepared.sign < 0 or not len(prepared.y):
        return None
    if prepared.role in _TAKEN_WHOLE and case.so_far is Verdict.STABLE:
        return None
    level = float(np.median(prepared.y[window.first_sample :]))
    for ceiling in _ceilings(case):
        if abs(level - ceiling) <= case.policy.common.calm_growth * ceiling:
            return Says(
                text="it stays at {level_y} where a limit of {limit_y} stops growth",
                numbers={"level_y": level, "limit_y": ceiling},
                reason=Reason.AT_LIMIT,
            )
    return None


def _ceilings(case: Case) -> list[float]:
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


CHECK = Check(name="at_limit", ask=ask, parameters=SHARED)

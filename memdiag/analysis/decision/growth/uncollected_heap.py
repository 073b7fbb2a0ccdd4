"""A collected heap grows until it is collected: Go doubles (GOGC=100), V8 lets it grow by at most
four.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.decision.prior import is_exact
from memdiag.analysis.parameters import number
from memdiag.values.measurements import Role
from memdiag.values.verdict import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """When growth of such a heap means something."""

    growth: float = number(
        2.5, "1", "times it has grown without a collection", "GOGC=100 doubles; V8 times four"
    )


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth of a heap that was hardly collected, and need not have been."""
    prepared = window.view.prepared
    if prepared.role is not Role.COLLECTED_HEAP or prepared.falls >= case.policy.common.fewest:
        return None
    y = prepared.all_y
    times = float(y[-1]) / max(float(np.abs(y).min()), 1e-300)
    if times >= parameters.growth or is_exact(window.view, case.policy):
        return None
    return Says(
        text="too few garbage collections were seen to tell ({collections}), and it is only at "
        "{times} times its lowest reading",
        numbers={"times": times, "collections": float(prepared.falls)},
        reason=Reason.NOT_COLLECTED,
    )


CHECK = Check(name="uncollected_heap", ask=ask, parameters=Parameters())

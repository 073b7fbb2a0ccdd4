"""Readings that move by whole steps of an allocator, or of printed digits: a few of them are no
growth.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import SHARED, Shared
from memdiag.verdicts import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to growth of fewer steps."""
    quantum = window.view.prepared.quantum
    if window.rise >= case.policy.common.fewest * quantum:
        return None
    return Says(
        text="it rose by {rise_y}, which is few of the steps of {quantum_y} that its readings "
        "move by",
        numbers={"rise_y": window.rise, "quantum_y": quantum},
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="allocator_step", ask=ask, parameters=SHARED)

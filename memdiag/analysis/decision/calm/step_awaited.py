"""A staircase whose last tread is no longer than those before: its next step may come.

Three mean gaps without one are 5 % of a staircase whose steps come at random, exp(-3); for even
ones one and a half of the longest is enough.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import SHARED, Shared
from memdiag.verdicts import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to calm before the wait is over."""
    steps = case.stairs
    wait = 0.0 if steps is None else steps.still_to_wait(case.policy)
    if steps is None or wait <= 0:
        return None
    return Says(
        text="it rose by {steps} steps, {gap_x} apart, and the last was {waited_x} ago: the next "
        "may come",
        numbers={"steps": float(len(steps.at)), "waited_x": steps.waited, "gap_x": steps.gap},
        reason=Reason.RECENT_STEP,
        need_x=wait,
    )


CHECK = Check(name="step_awaited", ask=ask, parameters=SHARED)

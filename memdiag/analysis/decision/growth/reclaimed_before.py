"""As much as the present growth was given back before: the next rise of a cycle looks like this."""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to growth by less than that; floors have no falls."""
    view = window.view
    before = view.binned.y[: view.tail + 1]
    if view.prepared.floors or len(before) < 2:
        return None
    drawdown = float(np.max(np.maximum.accumulate(before) - before))
    if drawdown <= case.policy.common.clear_noises * view.prepared.noise:
        return None
    if window.rise >= case.policy.common.margin * drawdown:
        return None
    return Says(
        text="it rose by {rise_y}, but after an earlier rise it fell again by {fall_y}",
        numbers={"rise_y": window.rise, "fall_y": drawdown},
        reason=Reason.RECLAIMED_BEFORE,
    )


CHECK = Check(name="reclaimed_before", ask=ask, parameters=SHARED)

"""Half of the growth or more only comes back to where the level had been before."""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to growth out of a dip."""
    view, rise = window.view, window.rise
    y = view.binned.y
    if view.tail < case.policy.common.fewest - 1:
        return None
    end = float(y[view.tail :].mean()) + rise / 2
    before = float(np.quantile(y[: view.tail], 1 - case.policy.common.little))
    if end - before >= case.policy.common.most * rise:
        return None
    return Says(
        text="it rose by {rise_y} to {end_y}, but had already been at {before_y}",
        numbers={"rise_y": rise, "end_y": end, "before_y": before},
        reason=Reason.RECLAIMED_BEFORE,
    )


CHECK = Check(name="return_to_level", ask=ask, parameters=SHARED)

"""A slight rise behind a great climb, not far beyond its noise: as likely the climb's end."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import SHARED, Shared
from memdiag.verdicts import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to such a rise."""
    view = window.view
    if view.tail == 0 or view.trend.t >= case.policy.common.clear_noises:
        return None
    climb = float(view.binned.y[view.tail] - view.binned.y[: view.tail].min())
    if window.rise >= case.policy.common.calm_growth * climb:
        return None
    return Says(
        text="it rose by {rise_y} after a climb of {climb_y}, as the end of a warm-up does",
        numbers={"rise_y": window.rise, "climb_y": climb, "errors": view.trend.t},
        reason=Reason.SLOWING,
    )


CHECK = Check(name="faint", ask=ask, parameters=SHARED)

"""A slight rise behind a great climb, not far beyond its noise: as likely the climb's end."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a faint rise is."""

    share: float = number(0.025, "climb", "part of the climb before")
    errors: float = number(10.0, "standard errors", "from which a slope is believed all the same")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to such a rise."""
    view = window.view
    if view.tail == 0 or view.trend.t >= parameters.errors:
        return None
    climb = float(view.binned.y[view.tail] - view.binned.y[: view.tail].min())
    if window.rise >= parameters.share * climb:
        return None
    return Says(
        text="it rose by {rise_y} after a climb of {climb_y}, as the end of a warm-up does",
        numbers={"rise_y": window.rise, "climb_y": climb, "errors": view.trend.t},
        reason=Reason.SLOWING,
    )


CHECK = Check(name="faint", ask=ask, parameters=Parameters())

"""Floors of a sawtooth are off by what samples miss of a cycle: growth of less may be that."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to growth of floors by less than that."""
    view, rise = window.view, window.rise
    blur = view.prepared.blur
    surely = rise - case.policy.common.noises * view.trend.error * window.length_x
    if blur <= 0 or min(surely, rise / case.policy.common.margin) >= blur:
        return None
    return Says(
        text="the floors of its cycles rose by {rise_y}, and the readings may miss a floor by "
        "{blur_y}",
        numbers={"rise_y": rise, "blur_y": blur},
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="sampling_blur", ask=ask, parameters=SHARED)

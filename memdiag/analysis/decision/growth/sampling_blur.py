"""Floors of a sawtooth are off by what samples miss of a cycle: growth of less may be that."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How much growth of floors must exceed the blur."""

    factor: float = number(1.5, "1", "times what a sample may miss of a cycle")
    errors: float = number(3.0, "standard errors", "taken off, after which it still exceeds it")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth of floors by less than that."""
    view, rise = window.view, window.rise
    blur = view.prepared.blur
    surely = rise - parameters.errors * view.trend.error * window.length_x
    if blur <= 0 or min(surely, rise / parameters.factor) >= blur:
        return None
    return Says(
        text="the floors of its cycles rose by {rise_y}, and samples may miss a floor by {blur_y}",
        numbers={"rise_y": rise, "blur_y": blur},
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="sampling_blur", ask=ask, parameters=Parameters())

"""Readings that move by whole steps of an allocator, or of printed digits: a few of them are no
growth.
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How many are."""

    steps: float = number(3.0, "steps", "fewest that are evidence of a leak")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth of fewer steps."""
    quantum = window.view.prepared.quantum
    if window.rise >= parameters.steps * quantum:
        return None
    return Says(
        text="it rose by {rise_y}, which is few of the steps of {quantum_y} that its readings "
        "move by",
        numbers={"rise_y": window.rise, "quantum_y": quantum},
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="allocator_step", ask=ask, parameters=Parameters())

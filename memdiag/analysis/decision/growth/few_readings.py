"""A regime of a few readings is no evidence of a leak."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """None of its own: `Policy.common.tail_samples`."""


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to fewer."""
    readings = window.view.tail_samples
    if readings >= case.policy.common.tail_samples:
        return None
    return Says(
        text="only {readings} readings show this growth",
        numbers={"readings": float(readings)},
        reason=Reason.STILL_CLIMBING,
    )


CHECK = Check(name="few_readings", ask=ask, parameters=Parameters())

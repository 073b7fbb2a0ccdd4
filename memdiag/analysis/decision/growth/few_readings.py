"""A regime of a few readings is no evidence of a leak."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to fewer."""
    readings = window.view.tail_samples
    if readings >= case.policy.common.fewest:
        return None
    return Says(
        text="only {readings} readings show this growth",
        numbers={"readings": float(readings)},
        reason=Reason.STILL_CLIMBING,
    )


CHECK = Check(name="few_readings", ask=ask, parameters=SHARED)

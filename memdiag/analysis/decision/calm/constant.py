"""All readings are the same."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason, Verdict


def ask(case: Case, window: Window | None, parameters: Shared) -> Says | None:
    """Argue for calm, and need no statistics."""
    y = case.prepared.y
    if float(y.max()) > float(y.min()):
        return None
    return Says(
        text="all {readings} readings are the same",
        numbers={"readings": float(len(y)), "level_y": float(y[0])},
        reason=Reason.FLAT,
        verdict=Verdict.STABLE,
    )


CHECK = Check(name="constant", ask=ask, parameters=SHARED)

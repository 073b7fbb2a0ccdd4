"""The whole climb that ends now bends into a ceiling, however far that still is."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.decision.saturation import bends, climb, saturation
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to a climb that a saturating curve describes, with nothing beside it."""
    view, policy = window.view, case.policy
    noise = max(view.segmentation.noise, view.floor)
    first = climb(view)
    found = saturation(view.binned.x[first:], view.binned.y[first:], noise, policy)
    if found is None or found.misfit > policy.common.noises or not bends(found, policy):
        return None
    if found.slowed >= policy.common.slowing:
        return None
    return Says(
        text="its growth slows down throughout, at the end to {slowed_share} of the rate at the "
        "start",
        numbers={"slowed_share": found.slowed, "evidence": found.evidence},
        reason=Reason.SLOWING,
    )


CHECK = Check(name="bending", ask=ask, parameters=SHARED)

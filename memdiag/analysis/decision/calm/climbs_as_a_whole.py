"""Blocks of the whole run lie on a line that climbs, although its last regime does not.

The level is no higher than at the start of that regime, or comes down: what climbs in teeth or by
steps looks like this, and no warm-up that has ended.
"""

from __future__ import annotations

from memdiag.analysis.decision import block_means
from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.decision.regimes import rose
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to calm at the end of such a run."""
    view, common = case.view, case.policy.common
    falls = -window.rise > common.calm_growth * view.prepared.level
    if rose(view, case.policy) and not falls:
        return None
    if not block_means.climbs_as_a_whole(view, case.policy, common.block_r2):
        return None
    return Says(
        text="it is level or falls at the end, but averages over the run grow along a straight "
        "line",
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="climbs_as_a_whole", ask=ask, parameters=SHARED)

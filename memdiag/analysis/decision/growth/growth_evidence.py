"""A run that is watched is asked again and again: chance growth is met sooner or later.

An e-process on what is judged (memdiag/analysis/stats/eprocess.py) may be looked at for ever. Of a
finished recording, which is judged once, this is not asked.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.stats.eprocess import log_value, threshold
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to growth that the e-process does not show."""
    merges, policy = case.context.merges, case.policy
    if merges is None:
        return None
    value, least = log_value(case.prepared.y, policy), threshold(merges, policy.live.chance)
    if value >= least:
        return None
    return Says(
        text="a run that is checked repeatedly can show this much growth by chance: the evidence "
        "of growth is {evidence}, and {least_evidence} is needed",
        numbers={"evidence": value, "least_evidence": least},
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="growth_evidence", ask=ask, parameters=SHARED)

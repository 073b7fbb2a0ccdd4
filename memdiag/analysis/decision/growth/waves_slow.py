"""Growth under slow waves whose turning points do not go on rising: memory that swings with the
load, or a warm-up beneath it.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object where the later turning points rise much slower than all of them."""
    slow = case.view.all_waves(case.policy, case.policy.common.warm_share)
    if slow is None or slow.goes_on(case.policy.common.slowing):
        return None
    return Says(
        text="it goes up and down in {falls} slow waves, whose highs and lows rise more slowly now",
        numbers={"falls": float(slow.falls)},
        reason=Reason.SLOWING,
    )


CHECK = Check(name="waves_slow", ask=ask, parameters=SHARED)

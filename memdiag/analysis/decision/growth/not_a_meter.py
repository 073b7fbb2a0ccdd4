"""Growth of a metric that is no evidence of a leak.

Address space, page cache, free blocks, event counts: what only rises, or can be taken back at any
time.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import NO_METERS
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to growth of such a role."""
    if case.prepared.role not in NO_METERS:
        return None
    return Says(
        text="a metric of this kind also grows without a leak, so its growth is no evidence of one",
        reason=Reason.NOT_MEMORY,
    )


CHECK = Check(name="not_a_meter", ask=ask, parameters=SHARED)

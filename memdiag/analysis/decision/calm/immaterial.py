"""All that moved after the first third is next to nothing against the level; or, where the last
regime is long enough to speak for itself, what moved in it.
"""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.calm.began_lower import began_lower
from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason, Verdict


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Argue for calm; by bins, so that a lone reading is no movement."""
    prepared, common, binned = case.prepared, case.policy.common, case.view.binned
    tail = window.first_sample
    long = prepared.share_after(tail, common.fewest) > common.warm_share
    first = int(common.warm_share * len(binned.y))
    if long:
        first = max(first, int(np.searchsorted(binned.start[:-1], tail)))
    moved = float(np.ptp(binned.y[first:]))
    if moved >= common.immaterial_share * prepared.level:
        return None
    warm = began_lower(prepared, case.policy)
    return Says(
        text="it recently varied by no more than {moved_y}, too little to matter at {level_y}",
        numbers={"moved_y": moved, "level_y": prepared.level},
        reason=Reason.PLATEAU if warm else Reason.FLAT,
        verdict=Verdict.WARMUP if warm else Verdict.STABLE,
    )


CHECK = Check(name="immaterial", ask=ask, parameters=SHARED)

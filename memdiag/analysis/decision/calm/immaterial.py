"""All that moved after the first third is next to nothing against the level; or, where the last
regime is long enough to speak for itself, what moved in it.
"""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.calm.began_lower import began_lower
from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import SHARED, Shared
from memdiag.verdicts import Reason, Verdict


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Argue for calm."""
    prepared, common = case.prepared, case.policy.common
    n, tail = len(prepared.y), window.first_sample
    long = prepared.share_after(tail, common.fewest) > common.warm_share
    third = int(common.warm_share * n)
    first = max(third, tail) if long else third
    moved = float(np.ptp(prepared.y[first:]))
    if moved >= common.immaterial_share * prepared.level:
        return None
    warm = began_lower(prepared, case.policy)
    return Says(
        text="it moved by no more than {moved_y} lately, next to nothing at a level of {level_y}",
        numbers={"moved_y": moved, "level_y": prepared.level},
        reason=Reason.PLATEAU if warm else Reason.FLAT,
        verdict=Verdict.WARMUP if warm else Verdict.STABLE,
    )


CHECK = Check(name="immaterial", ask=ask, parameters=SHARED)

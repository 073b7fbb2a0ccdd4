"""The level rose within the first third of a run: a warm-up, where the rest is calm."""

from __future__ import annotations

import numpy as np

from memdiag.analysis.policy import Policy
from memdiag.analysis.preprocessing.prepare import Prepared


def began_lower(prepared: Prepared, policy: Policy) -> bool:
    """Whether it did."""
    third = int(policy.common.warm_share * len(prepared.y))
    if third == 0:
        return False
    rise = float(np.median(prepared.y[third:])) - float(np.min(prepared.y[:third]))
    return rise > policy.common.calm_growth * prepared.level

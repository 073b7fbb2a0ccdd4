"""The last half of the run surely comes to nothing.

A test of equivalence (Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657-680) on its upper side:
the upper end of the slope's interval is negligible. A step, a ramp or a leak that began within the
half makes that end large, so that doubt about them is kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memdiag.analysis.decision.calm.began_lower import began_lower
from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.decision.growth.negligible import is_negligible
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import Policy
from memdiag.analysis.preprocessing.prepare import Prepared
from memdiag.analysis.stats.changepoint import bins
from memdiag.analysis.stats.slope_test import Trend, trend
from memdiag.values.verdict import Reason, Verdict


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Argue for calm."""
    prepared, policy = case.prepared, case.policy
    first, fitted = last_half(prepared, policy)
    if len(prepared.x) - first < policy.common.window_samples or fitted is None:
        return None
    most = fitted.slope + fitted.half_width(1 - policy.common.alpha)
    half = replace(prepared, x=prepared.x[first:], y=prepared.y[first:])
    if not is_negligible(half, most, policy, case.context.planned_x):
        return None
    warm = began_lower(prepared, policy)
    return Says(
        text="in the second half of the run it grows by at most {most_rate}, too little to matter",
        numbers={"most_rate": most, "growth_rate": fitted.slope},
        reason=Reason.PLATEAU if warm else Reason.NEGLIGIBLE,
        verdict=Verdict.WARMUP if warm else Verdict.STABLE,
    )


def last_half(prepared: Prepared, policy: Policy) -> tuple[int, Trend | None]:
    """Where the last half of the run begins, and its trend."""
    x = prepared.x
    first = int(np.searchsorted(x, (x[0] + x[-1]) / 2))
    if len(x) - first < 2:
        return first, None
    binned = bins(x[first:], prepared.y[first:], policy.segmentation.bins)
    return first, trend(binned.x, binned.y, binned.floor(prepared.noise))


CHECK = Check(name="equivalence", ask=ask, parameters=SHARED)

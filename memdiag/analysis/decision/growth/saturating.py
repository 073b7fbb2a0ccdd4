"""The climb that ends now bends into a ceiling that it has nearly reached.

A saturating exponential against a straight line, by BIC, with what goes on beside the curve. Looks
at the whole climb where the curve fits it, else at the last regime alone.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.decision.saturation import Saturation, bends, climb, saturation
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason, Verdict


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Say WARMUP of a climb that is nearly over."""
    return says(case, window, parameters, window.posterior)


def says(case: Case, window: Window, parameters: Shared, posterior: float) -> Says | None:
    """The same for a posterior of a leak by the length of growth: a long climb must have come
    nearer."""
    view, policy = window.view, case.policy
    noise = max(view.segmentation.noise, view.floor)
    for first in dict.fromkeys((climb(view), view.tail)):
        found = saturation(view.binned.x[first:], view.binned.y[first:], noise, policy)
        if found is None or found.misfit > policy.common.noises:
            continue
        sure = posterior < policy.prior.leak_posterior
        share = policy.common.slight if sure else policy.common.calm_growth
        if not _nearly_there(found, case, window, first, share):
            return None
        return Says(
            text="it is leveling off, with only {left_y} of growth left",
            numbers={"left_y": found.left, "evidence": found.evidence},
            reason=Reason.PLATEAU,
            verdict=Verdict.WARMUP,
        )
    return None


def _nearly_there(found: Saturation, case: Case, window: Window, first: int, share: float) -> bool:
    if not bends(found, case.policy):
        return False
    x, y = window.view.binned.x, window.view.binned.y
    if found.left > float(y[-1] - y[first]):
        return False  # most of the way is still to come: a line with a jump in it looks like that
    creeping = (found.creep + found.creep_error) * float(x[-1] - x[first])
    level = window.view.prepared.level
    return 0 <= found.left < share * level and creeping < share * level


CHECK = Check(name="saturating", ask=ask, parameters=SHARED)

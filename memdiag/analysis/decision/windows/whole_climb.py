"""The whole climb since the last plateau, where several regimes make one line, or speed up."""

from __future__ import annotations

from memdiag.analysis.decision.block_means import from_bin
from memdiag.analysis.decision.case import Absent, Case, Proposal, Window
from memdiag.analysis.decision.prior import undiminished
from memdiag.analysis.decision.regimes import View, r_squared
from memdiag.analysis.decision.windows import grown
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import Policy


def propose(case: Case, parameters: Shared) -> Window | Absent:
    """The climb."""
    policy = case.policy
    if case.view.is_one_step:
        return Absent(text="it rose by no more than the smallest change that its readings show")
    whole = from_bin(case.view, undiminished(case.view, policy).first_bin)
    if whole.p_growth >= policy.common.alpha or not (
        _is_one_line(whole, policy) or _speeds_up(whole)
    ):
        return Absent(text="growth since its last plateau may be chance, is uneven or slows down")
    return grown.window(whole, policy)


def _is_one_line(view: View, policy: Policy) -> bool:
    """What was cut into several climbing regimes is a straight line after all."""
    x, y = view.binned.x[view.tail :], view.binned.y[view.tail :]
    common = policy.common
    return len(x) >= common.fewest and r_squared(x, y) >= common.regular_r2


def _speeds_up(view: View) -> bool:
    """The last regimes all climb, each at least as fast as the one before it."""
    slopes = [p.slope for p in view.segmentation.pieces if p.first >= view.tail and not p.flat]
    cut = sum(p.first >= view.tail for p in view.segmentation.pieces)
    return cut == len(slopes) > 1 and slopes[0] > 0 and slopes == sorted(slopes)


PROPOSAL = Proposal(name="whole_climb", propose=propose, parameters=SHARED)

"""Growth under slow waves, judged on their turning points (`waves`)."""

from __future__ import annotations

from dataclasses import replace

from memdiag.analysis.decision.block_means import from_bin
from memdiag.analysis.decision.case import Absent, Case, Proposal, Window
from memdiag.analysis.decision.regimes import look
from memdiag.analysis.decision.windows import grown
from memdiag.analysis.parameters import SHARED, Shared


def propose(case: Case, parameters: Shared) -> Window | Absent:
    """The line of the turning points, where it rises and goes on."""
    policy = case.policy
    slow = case.view.all_waves(policy, policy.common.most)
    if slow is None:
        return Absent(text="it does not go up and down in slow waves")
    if not slow.goes_on(policy.common.slowing) or slow.p_rise >= policy.common.alpha:
        return Absent(text="it goes up and down in slow waves, but the waves do not keep rising")
    turned = replace(
        case.prepared, x=slow.x, y=slow.y, noise=slow.scatter, floors=True, middles=slow.y, blur=0.0
    )
    found = grown.window(from_bin(look(turned, policy), 0), policy)
    return replace(found, text=f"the highs and lows of its slow waves rise: {found.text}")


PROPOSAL = Proposal(name="turning_points", propose=propose, parameters=SHARED)

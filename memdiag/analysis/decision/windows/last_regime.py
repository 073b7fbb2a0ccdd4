"""The last regime of the best partition into lines: does memory grow in it?

A slope test that holds for autocorrelated noise (Perron and Yabu, J. Econometrics 151 (2009)
56-69), and the weight of all last regimes that have a slope worth a word against the flat ones.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Absent, Case, Proposal, Window
from memdiag.analysis.decision.windows import grown
from memdiag.analysis.parameters import SHARED, Shared


def propose(case: Case, parameters: Shared) -> Window | Absent:
    """The last regime, where its growth is beyond chance."""
    view, common = case.view, case.policy.common
    if view.is_one_step:
        return Absent(text="it rose by no more than the smallest change that its readings show")
    if view.p_growth >= common.alpha or view.growing <= common.flat_doubt:
        return Absent(text="any growth since its rate last changed may be chance")
    return grown.window(view, case.policy)


PROPOSAL = Proposal(name="last_regime", propose=propose, parameters=SHARED)

"""A staircase whose run ends on an edge: the next tread is too short to be seen as one."""

from __future__ import annotations

from memdiag.analysis.decision.case import Absent, Case, Proposal, Window
from memdiag.analysis.decision.windows import staircase
from memdiag.analysis.stairs import stairs_to_the_edge


def propose(case: Case, parameters: staircase.Parameters) -> Window | Absent:
    """The staircase, its last edge taken for a step."""
    steps = stairs_to_the_edge(case.view, case.policy) if case.stairs is None else None
    if steps is None:
        return Absent(text="it does not end on a step up")
    return staircase.window(case, steps, parameters)


PROPOSAL = Proposal(name="staircase_edge", propose=propose, parameters=staircase.Parameters())

"""Growth under slow waves, judged on their turning points (`waves`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memdiag.analysis.blocks import from_bin
from memdiag.analysis.decision.case import Absent, Case, Proposal, Window
from memdiag.analysis.decision.windows import grown
from memdiag.analysis.view import look
from memdiag.analysis.waves import Waves
from memdiag.parameters import number


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """When a series has waves enough."""

    samples: int = number(60, "readings", "fewest in which waves are looked for")
    falls: int = number(4, "falls", "fewest from a high to a low: some eight turning points")


def propose(case: Case, parameters: Parameters) -> Window | Absent:
    """The line of the turning points, where it rises and goes on."""
    policy = case.policy
    slow = waves_of(case, parameters, policy.waves.turn)
    if slow is None:
        return Absent(text="it does not swing in slow waves")
    if not slow.goes_on(policy.common.slowing) or slow.p_rise >= policy.common.alpha:
        return Absent(text="it swings in slow waves, but they do not rise")
    turned = replace(
        case.prepared, x=slow.x, y=slow.y, noise=slow.scatter, floors=True, middles=slow.y, blur=0.0
    )
    found = grown.window(from_bin(look(turned, policy), 0), policy)
    return replace(found, text=f"the highs and lows of its waves rise: {found.text}")


def waves_of(case: Case, parameters: Parameters, turn: float) -> Waves | None:
    """The waves of the whole run, where there are enough of them."""
    prepared = case.prepared
    if prepared.floors or len(prepared.y) < parameters.samples:
        return None
    slow = case.view.all_waves(case.policy, turn)
    return None if slow is None or slow.falls < parameters.falls else slow


PROPOSAL = Proposal(name="turning_points", propose=propose, parameters=Parameters())

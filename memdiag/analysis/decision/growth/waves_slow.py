"""Growth under slow waves whose turning points do not go on rising: memory that swings with the
load, or a warm-up beneath it.
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.decision.windows import turning_points
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a wave is here."""

    turn: float = number(
        1 / 3,
        "range",
        "by which a level turns back; less than where waves propose a leak, as a "
        "missed wave would be a false alarm",
    )


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object where the later turning points rise much slower than all of them."""
    slow = turning_points.waves_of(case, _waves(case), parameters.turn)
    if slow is None or slow.goes_on(case.policy.common.slowing):
        return None
    return Says(
        text="it swings in {falls} slow waves, whose highs and lows do not go on rising",
        numbers={"falls": float(slow.falls)},
        reason=Reason.SLOWING,
    )


def _waves(case: Case) -> turning_points.Parameters:
    given = case.policy.checks.get(turning_points.PROPOSAL.name)
    return given if isinstance(given, turning_points.Parameters) else turning_points.Parameters()


CHECK = Check(name="waves_slow", ask=ask, parameters=Parameters())

"""Blocks of the whole run lie on a line that climbs, whatever single ones of them do."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis import blocks
from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a line is."""

    r2: float = number(0.9, "1", "R2 of the line through the blocks")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to calm at the end of such a run."""
    if not blocks.climbs_as_a_whole(case.view, case.policy, parameters.r2):
        return None
    return Says(
        text="averages over long parts of the run climb along a line", reason=Reason.UNCERTAIN_TREND
    )


CHECK = Check(name="climbs_as_a_whole", ask=ask, parameters=Parameters())

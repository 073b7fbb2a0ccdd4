"""Cells that could not be read may hold the growth that a stable verdict denies."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Window, rule
from memdiag.analysis.parameters import number
from memdiag.values.verdict import Argument, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadCells:
    """How many cells may be unread."""

    share: float = number(0.05, "1", "largest part of the cells that may be unread")


@rule(UnreadCells())
def unread_cells(case: Case, window: Window, parameters: UnreadCells) -> Argument | None:
    """With more than a few unread cells nothing shows that the memory is stable."""
    share = case.context.unread_share
    if share <= parameters.share:
        return None
    return Argument(
        text="{unread_share} of what may be its readings was not read",
        numbers={"unread_share": share},
        reason=Reason.UNREAD_CELLS,
    )

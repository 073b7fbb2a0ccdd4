"""Memory that falls under a name that may say that it is free memory."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.values.verdict import Argument, Reason


@Rule
def may_be_free(case: Case, window: Window) -> Argument | None:
    """What falls as free memory does under a leak is not stable if its name has an unknown word."""
    if not case.context.leaks_if_free:
        return None
    return Argument(
        text="a word of its name is not known: if it is free memory, this is a leak",
        reason=Reason.MAY_BE_FREE,
    )

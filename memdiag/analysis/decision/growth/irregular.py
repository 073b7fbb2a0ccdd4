"""A leak grows steadily: the averages of eight parts of it lie on a line."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.decision.regimes import r_squared
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.stats.changepoint import bins
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to growth that is not."""
    view = window.view
    x, y = view.prepared.x[view.first_sample :], view.prepared.y[view.first_sample :]
    if len(y) < 2 * case.policy.common.blocks:
        return None
    blocks = bins(x, y, case.policy.common.blocks)
    r2 = r_squared(blocks.x, blocks.y)
    if r2 >= case.policy.common.block_r2:
        return None
    return Says(
        text="it does not grow steadily: a straight line through the averages of eight parts of "
        "the growth has an R2 of {r2}",
        numbers={"r2": r2},
        reason=Reason.IRREGULAR,
    )


CHECK = Check(name="irregular", ask=ask, parameters=SHARED)

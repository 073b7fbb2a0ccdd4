"""A leak grows steadily: eight block means of it lie on a line, nearly all pairs in rising order
(Kendall's S; Mann, Econometrica 13 (1945) 245-259).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.segmentation import bins
from memdiag.analysis.view import r_squared
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What is steady."""

    kendall: int = number(
        18, "pairs", "S of eight blocks: rising at p = .016", "Mann 1945, exact table"
    )
    readings: int = number(16, "readings", "fewest that make eight blocks")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth that is not."""
    view = window.view
    x, y = view.prepared.x[view.first_sample :], view.prepared.y[view.first_sample :]
    if len(y) < parameters.readings:
        return None
    blocks = bins(x, y, case.policy.common.blocks)
    rising = np.sign(blocks.y[None, :] - blocks.y[:, None])[np.triu_indices(len(blocks.y), 1)]
    r2, kendall = r_squared(blocks.x, blocks.y), float(rising.sum())
    if r2 >= case.policy.common.block_r2 and kendall >= parameters.kendall:
        return None
    return Says(
        text="it does not grow steadily: a line through the averages of eight parts of it has an "
        "R2 of {r2}",
        numbers={"r2": r2, "kendall": kendall},
        reason=Reason.IRREGULAR,
    )


CHECK = Check(name="irregular", ask=ask, parameters=Parameters())

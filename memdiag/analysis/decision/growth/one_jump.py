"""One step up fits the growth better than a line does.

By BIC: n ln RSS with what scatters before and after the step, and ln n more for its place, with
positive evidence (2; Kass and Raftery, JASA 90 (1995) 773-795).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.trend import line
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """When a step is told from a line."""

    evidence: float = number(2.0, "BIC", "by which the step must win", "Kass and Raftery 1995")
    bins: int = number(12, "bins", "fewest that tell one from the other")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth by one step."""
    view = window.view
    x, y = view.binned.x[view.tail :], view.binned.y[view.tail :]
    y, n = y - y.mean(), len(y)
    if n < parameters.bins:
        return None
    level, slope = line(x, y)
    of_line = float(np.square(y - level - slope * (x - x.mean())).sum())
    before, left = np.cumsum(y)[:-1], np.arange(1, n)
    explained = before**2 / left + before**2 / (n - left)
    of_step = float(np.square(y).sum() - explained.max())
    if not 0 < of_step < of_line * math.exp(-(math.log(n) + parameters.evidence) / n):
        return None
    return Says(
        text="one jump describes its growth better than a line does (BIC lower by {evidence})",
        numbers={"evidence": n * math.log(of_line / of_step) - math.log(n)},
        reason=Reason.IRREGULAR,
    )


CHECK = Check(name="one_jump", ask=ask, parameters=Parameters())

"""A last regime of few readings, each above the one before, by rises that do not slow down.

Growth that speeds up lies on no line, and leaves a scatter in which any line could be chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to calm of such readings."""
    common = case.policy.common
    y = case.prepared.y[case.view.first_sample :]
    rises = np.diff(y)
    if not common.fewest <= len(y) < common.few_samples or not (rises > 0).all():
        return None
    if _slow_down(rises, common.slowing) or _slow_down(rises[:-1], common.slowing):
        return None  # (the last may be a spike)
    rise = float(y[-1] - y[0])
    if rise <= common.calm_growth * case.prepared.level:
        return None
    return Says(
        text="its last {readings} readings rise one after another, by {rise_y} in total",
        numbers={"readings": float(len(y)), "rise_y": rise},
        reason=Reason.UNCERTAIN_TREND,
    )


def _slow_down(rises: Floats, share: float) -> bool:
    half = max(1, len(rises) // 2)
    return float(rises[-half:].sum()) < share * float(rises[:half].sum())


CHECK = Check(name="always_rises", ask=ask, parameters=SHARED)

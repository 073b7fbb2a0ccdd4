"""A line through a few coarse blocks, which does not see treads, teeth and noise.

R2 of eight blocks from .9 on is t >= 7.3 at 6 degrees of freedom, above the 5.6 that hold for every
AR(1) noise at 95 %.
"""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.block_means import from_bin
from memdiag.analysis.decision.case import Absent, Case, Proposal, Window
from memdiag.analysis.decision.regimes import View, r_squared
from memdiag.analysis.decision.windows import grown
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import Policy
from memdiag.analysis.stats.changepoint import stretches


def propose(case: Case, parameters: Shared) -> Window | Absent:
    """From the earliest regime on from which the blocks climb on a line."""
    first = steady_from(case.view, case.policy, case.policy.common.block_r2)
    if first is None:
        return Absent(
            text="averages over long parts of the run are too few or do not grow steadily"
        )
    return grown.window(from_bin(case.view, first), case.policy)


def steady_from(view: View, policy: Policy, least_r2: float) -> int | None:
    """The earliest regime's first bin from which coarse blocks climb on a line, or None."""
    n = len(view.prepared.x)
    for piece in view.segmentation.pieces:
        first = int(view.binned.start[piece.first])
        if n - first < policy.common.window_samples:
            return None
        if _is_steady_line(view, first, policy, least_r2):
            return piece.first
    return None


def _is_steady_line(view: View, first: int, policy: Policy, least_r2: float) -> bool:
    """From sample `first` on, blocks lie on a line, nearly all step up, and none slows down."""
    x, y = view.prepared.x[first:], view.prepared.y[first:]
    blocks = stretches(x, y, policy.common.blocks, policy)
    steps = np.diff(blocks.y)
    if r_squared(blocks.x, blocks.y) < least_r2 or int((steps > 0).sum()) < len(steps) - 1:
        return False
    half = len(steps) // 2
    early, late = float(steps[:half].mean()), float(steps[-half:].mean())
    return late >= policy.common.slowing * early and bool(steps[-1] > 0)


PROPOSAL = Proposal(name="block_trend", propose=propose, parameters=SHARED)

"""The coarse look: a few blocks, which do not show treads, teeth and noise."""

from __future__ import annotations

from dataclasses import replace

from memdiag.analysis.decision.regimes import View, r_squared
from memdiag.analysis.policy import Policy
from memdiag.analysis.stats.changepoint import stretches
from memdiag.analysis.stats.slope_test import Trend, trend


def climbs_as_a_whole(view: View, policy: Policy, least_r2: float) -> bool:
    """Blocks of the whole run lie on a line, whatever single ones of them do."""
    prepared = view.prepared
    if len(prepared.x) < policy.common.window_samples:
        return False
    blocks = stretches(prepared.x, prepared.y, policy.common.blocks, policy)
    rising = r_squared(blocks.x, blocks.y) >= least_r2
    return rising and float(blocks.y[-1] - blocks.y[0]) > 0


def from_bin(view: View, first: int) -> View:
    """The same view with its last regime taken to begin at bin `first`."""
    fitted: Trend = trend(view.binned.x[first:], view.binned.y[first:], view.floor)
    return replace(view, tail=first, trend=fitted)

"""The coarse look: a line through a few blocks, which does not see treads, teeth and noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memdiag.analysis.segmentation import stretches
from memdiag.analysis.trend import Trend, trend
from memdiag.analysis.view import View, r_squared
from memdiag.policy import Policy


def steady_from(view: View, policy: Policy) -> int | None:
    """The earliest regime's first bin from which coarse blocks climb on a line, or None."""
    n = len(view.prepared.x)
    for piece in view.segmentation.pieces:
        first = int(view.binned.start[piece.first])
        if n - first < policy.window_samples:
            return None
        if is_steady_line(view, first, policy):
            return piece.first
    return None


def is_steady_line(view: View, first: int, policy: Policy) -> bool:
    """From sample `first` on, blocks lie on a line, nearly all step up, and none slows down."""
    blocks = stretches(view.prepared.x[first:], view.prepared.y[first:], policy.blocks)
    steps = np.diff(blocks.y)
    if r_squared(blocks.x, blocks.y) < policy.block_r2 or int((steps > 0).sum()) < len(steps) - 1:
        return False
    half = len(steps) // 2
    early, late = float(steps[:half].mean()), float(steps[-half:].mean())
    return late >= policy.slowing * early and bool(steps[-1] > 0)


def climbs_as_a_whole(view: View, policy: Policy) -> bool:
    """Blocks of the whole run lie on a line, whatever single ones of them do."""
    prepared = view.prepared
    if len(prepared.x) < policy.window_samples:
        return False
    blocks = stretches(prepared.x, prepared.y, policy.blocks)
    rising = r_squared(blocks.x, blocks.y) >= policy.block_r2
    return rising and float(blocks.y[-1] - blocks.y[0]) > 0


def from_bin(view: View, first: int) -> View:
    """The same view with its last regime taken to begin at bin `first`."""
    fitted: Trend = trend(view.binned.x[first:], view.binned.y[first:], view.floor)
    return replace(view, tail=first, trend=fitted)

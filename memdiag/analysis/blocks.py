"""The coarse look: a line through a few blocks, which does not see treads, teeth and noise."""

from __future__ import annotations

import math
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


def climbs_as_a_whole(view: View, policy: Policy, least_r2: float) -> bool:
    """Blocks of the whole run lie on a line, whatever single ones of them do."""
    prepared = view.prepared
    if len(prepared.x) < policy.window_samples:
        return False
    blocks = stretches(prepared.x, prepared.y, policy.blocks)
    rising = r_squared(blocks.x, blocks.y) >= least_r2
    return rising and float(blocks.y[-1] - blocks.y[0]) > 0


def still_to_rest(view: View, policy: Policy) -> float:
    """Of a run that mostly climbed: how much longer a rest at its end must last to be longer than
    every one before it, from which growth went on: in axis units, 0 where it is.

    A rest is the way from one twentieth of the whole rise to the next, of which waves take a period
    and stairs a tread. (Those of the first fifth are of a start.)
    """
    if not (climbs_as_a_whole(view, policy, MOSTLY) or _thirds_rise(view)):
        return 0.0
    x, y = view.binned.x, view.binned.y
    levels = float(y.min()) + float(np.ptp(y)) * np.arange(FIFTH, LEVELS) / LEVELS
    reached = x[np.searchsorted(np.maximum.accumulate(y), levels)]
    *before, now = np.diff([*reached, x[-1]]).tolist()
    second, longest = sorted(before)[-2:]  # (one long one makes two steps, and no rests)
    return float(max(0.0, min(longest, 2 * second) - now))


def _thirds_rise(view: View) -> bool:
    """Each third of the run lies higher than the one before, by its least as by its greatest."""
    thirds = np.array_split(view.binned.y, 3)
    ends = np.array([(third.min(), third.max()) for third in thirds])
    return bool((np.diff(ends, axis=0) > HIGHER * np.ptp(view.binned.y)).all())


MOSTLY = 0.5
"""R2 of a line through the blocks of a run that climbs, whatever it does besides (chosen)."""
HIGHER = 0.05
"""Part of a run's range by which a third of it lies higher than the one before (chosen)."""
LEVELS, FIFTH = 20, 4
"""Parts that a rise is cut into, and those that are of its start (chosen)."""


def rests(view: View, share: float, policy: Policy) -> bool:
    """The last third of the run is flat, or moved by next to nothing however it was cut up: what a
    coarse line through more of it shows is over."""
    if share > policy.settled_share and view.segmentation.pieces[-1].flat:
        return True
    prepared = view.prepared
    last = prepared.y[prepared.x > prepared.x[-1] - policy.settled_share * prepared.run]
    moved = float(np.ptp(last)) if len(last) >= policy.enough_samples else math.inf
    return moved < policy.immaterial_share * prepared.level


def goes_on_slowly(view: View, line: View, share: float, policy: Policy) -> bool:
    """A last regime of more than a fifth of the run is surely less steep than the coarse line, and
    may not climb at all."""
    if share <= policy.short_share or view.tail_samples < policy.tail_samples:
        return False
    gap = line.trend.slope - view.trend.slope
    unsure = 2 * math.hypot(line.trend.error, view.trend.error)
    slow = view.trend.slope < policy.slowing * line.trend.slope and gap > unsure
    return slow and view.p_growth >= policy.alpha


def from_bin(view: View, first: int) -> View:
    """The same view with its last regime taken to begin at bin `first`."""
    fitted: Trend = trend(view.binned.x[first:], view.binned.y[first:], view.floor)
    return replace(view, tail=first, trend=fitted)

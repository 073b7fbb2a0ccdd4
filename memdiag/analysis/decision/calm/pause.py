"""Of a run that mostly climbed: a rest at its end no longer than those from which growth went on.

A rest is the way from one twentieth of the whole rise to the next, of which waves take a period and
stairs a tread. (Those of a short part at the start are left out.)
"""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.block_means import climbs_as_a_whole
from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.decision.regimes import View, rose
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import Common
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to a plateau that may be such a rest."""
    view, policy = case.view, case.policy
    if case.last_share >= policy.common.short_share or view.prepared.floors:
        return None
    if not rose(view, policy):
        return None
    if not (
        climbs_as_a_whole(view, policy, policy.common.most) or _parts_rise(view, policy.common)
    ):
        return None
    x, y = view.binned.x, view.binned.y
    steps = np.arange(policy.common.short_share, 1, policy.common.slight)
    levels = float(y.min()) + float(np.ptp(y)) * steps
    reached = x[np.searchsorted(np.maximum.accumulate(y), levels)]
    *before, now = np.diff([*reached, x[-1]]).tolist()
    second, longest = sorted(before)[-2:]  # (one long one makes two steps, and no rests)
    wait = float(min(longest, 2 * second) - now)
    if wait <= 0:
        return None
    return Says(
        text="its last rise was {now_x} ago, and earlier rises were up to {longest_x} apart",
        numbers={"now_x": now, "longest_x": longest, "second_x": second},
        reason=Reason.RECENT_STEP,
        need_x=wait,
    )


def _parts_rise(view: View, common: Common) -> bool:
    """Each third of the run lies higher than the one before, by its least as by its greatest."""
    parts = np.array_split(view.binned.y, common.fewest)
    ends = np.array([(part.min(), part.max()) for part in parts])
    return bool((np.diff(ends, axis=0) > common.slight * np.ptp(view.binned.y)).all())


CHECK = Check(name="pause", ask=ask, parameters=SHARED)

"""Of a run that mostly climbed: a rest at its end no longer than those from which growth went on.

A rest is the way from one twentieth of the whole rise to the next, of which waves take a period and
stairs a tread. (Those of the first fifth are of a start.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memdiag.analysis.blocks import climbs_as_a_whole
from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.view import View, rose
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a climb and its rests are."""

    r2: float = number(0.5, "1", "R2 of a line through the blocks of a run that mostly climbs")
    higher: float = number(0.05, "range", "by which each third of it lies higher than the last")
    levels: int = number(20, "levels", "that a rise is cut into")
    of_start: int = number(4, "levels", "of them that are of its start")
    parts: int = number(3, "parts", "of a run that lie each higher than the last")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to a plateau that may be such a rest."""
    view, policy = case.view, case.policy
    if case.last_share >= policy.common.short_share or view.prepared.floors:
        return None
    if not rose(view, policy):
        return None
    if not (climbs_as_a_whole(view, policy, parameters.r2) or _parts_rise(view, parameters)):
        return None
    x, y = view.binned.x, view.binned.y
    steps = np.arange(parameters.of_start, parameters.levels) / parameters.levels
    levels = float(y.min()) + float(np.ptp(y)) * steps
    reached = x[np.searchsorted(np.maximum.accumulate(y), levels)]
    *before, now = np.diff([*reached, x[-1]]).tolist()
    second, longest = sorted(before)[-2:]  # (one long one makes two steps, and no rests)
    wait = float(min(longest, 2 * second) - now)
    if wait <= 0:
        return None
    return Says(
        text="it has rested for {now_x}, and rested for up to {longest_x} before it went on "
        "growing",
        numbers={"now_x": now, "longest_x": longest, "second_x": second},
        reason=Reason.RECENT_STEP,
        need_x=wait,
    )


def _parts_rise(view: View, parameters: Parameters) -> bool:
    """Each third of the run lies higher than the one before, by its least as by its greatest."""
    parts = np.array_split(view.binned.y, parameters.parts)
    ends = np.array([(part.min(), part.max()) for part in parts])
    return bool((np.diff(ends, axis=0) > parameters.higher * np.ptp(view.binned.y)).all())


CHECK = Check(name="pause", ask=ask, parameters=Parameters())

"""The rest at the end is no longer than those before it, or than the climb that led to it.

Rests between steps predict how long the next one is
(`memdiag/analysis/stats/rest_prediction.py`). Of a single climb a rest is too short that lasts for
less than half of the time in which the upper half of the climb came, so that a saturating one
counts little.
"""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to calm where growth may go on."""
    return _after_steps(case) or _after_a_climb(case)


def _after_steps(case: Case) -> Says | None:
    steps = case.stairs
    if steps is None or steps.still_to_wait <= 0:
        return None
    return Says(
        text="it rose in {steps} steps, the last one {waited_x} ago; another may come up to "
        "{longest_x} after the last",
        numbers={
            "steps": float(len(steps.at)),
            "waited_x": steps.waited,
            "longest_x": steps.waited + steps.still_to_wait,
        },
        reason=Reason.RECENT_STEP,
        need_x=steps.still_to_wait,
    )


def _after_a_climb(case: Case) -> Says | None:
    view, common = case.view, case.policy.common
    x, y, first = view.binned.x, view.binned.y, view.tail
    for piece in reversed([p for p in view.segmentation.pieces if p.first < view.tail]):
        if piece.flat or piece.slope <= 0:
            break
        first = piece.first
    length = float(x[-1] - x[view.tail])
    if first == view.tail or length > common.short_share * view.prepared.run:
        return None
    top, bottom = float(np.median(y[view.tail :])), float(y[first])
    if top - bottom < common.noises * view.prepared.noise:
        return None
    above = first + np.flatnonzero(y[first : view.tail] > (top + bottom) / 2)
    half = float(x[view.tail] - x[above[0]]) if len(above) else 0.0
    wait = common.most * half - length
    if wait <= 0:
        return None
    return Says(
        text="it has been level for {length_x}, too short a time after a rise whose upper half "
        "took {half_x}",
        numbers={"length_x": length, "half_x": half},
        reason=Reason.RECENT_STEP,
        need_x=wait,
    )


CHECK = Check(name="rest_too_short", ask=ask, parameters=SHARED)

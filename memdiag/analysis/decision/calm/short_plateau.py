"""The plateau is short against the climb before it: a pause is as likely as an end.

The climb is measured by the way over which the upper half of its rise came, so that a saturating
one counts little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.view import rose
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How long a plateau at the very end lasts at least."""

    climbs: float = number(0.8, "1", "times the upper half of the climb before it")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to a shorter one."""
    view, common = case.view, case.policy.common
    if view.tail_samples < common.fewest and rose(view, case.policy):
        return Says(
            text="only {readings} readings show a plateau",
            numbers={"readings": float(view.tail_samples)},
            reason=Reason.RECENT_STEP,
        )
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
    if length >= parameters.climbs * half:
        return None
    return Says(
        text="it has been level for {length_x}, too short beside the upper half of the climb "
        "before, which took {half_x}",
        numbers={"length_x": length, "half_x": half},
        reason=Reason.RECENT_STEP,
    )


CHECK = Check(name="short_plateau", ask=ask, parameters=Parameters())

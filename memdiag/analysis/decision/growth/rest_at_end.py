"""The last third of the run is flat, or moved by next to nothing however it was cut up.

What a coarse line through more of it shows is over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a rest is."""

    readings: int = number(8, "readings", "fewest that show one")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth that is over."""
    common, prepared = case.policy.common, case.prepared
    share = common.settled_share
    last = prepared.y[prepared.x > prepared.x[-1] - share * prepared.run]
    moved = float(np.ptp(last)) if len(last) >= parameters.readings else math.inf
    flat = case.last_share > share and case.view.segmentation.pieces[-1].flat
    if not flat and moved >= common.immaterial_share * prepared.level:
        return None
    return Says(
        text="the growth is over: the last {rest_share} of the run is level",
        numbers={"rest_share": max(case.last_share, share) if flat else share},
        reason=Reason.UNCERTAIN_TREND,
    )


CHECK = Check(name="rest_at_end", ask=ask, parameters=Parameters())

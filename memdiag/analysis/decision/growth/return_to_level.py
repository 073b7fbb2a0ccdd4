"""Half of the growth or more only comes back to where the level had been before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.parameters import number
from memdiag.verdicts import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a return is."""

    quantile: float = number(0.9, "1", "of the readings before, taken for their level")
    share: float = number(0.5, "rise", "part of the growth that must be above it")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth out of a dip."""
    view, rise = window.view, window.rise
    y = view.binned.y
    if view.tail < case.policy.common.tail_samples - 1:
        return None
    end = float(y[view.tail :].mean()) + rise / 2
    before = float(np.quantile(y[: view.tail], parameters.quantile))
    if end - before >= parameters.share * rise:
        return None
    return Says(
        text="it rose by {rise_y} to {end_y}, but had been at {before_y} before",
        numbers={"rise_y": rise, "end_y": end, "before_y": before},
        reason=Reason.RECLAIMED_BEFORE,
    )


CHECK = Check(name="return_to_level", ask=ask, parameters=Parameters())

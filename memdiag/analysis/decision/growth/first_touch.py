"""Pages that a process touches for the first time: heaps, libraries and a parent's memory after a
fork are there before they are in RAM, and going through them raises the pages of a process along a
line as straight as any leak's.
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import number
from memdiag.analysis.policy import PAGES
from memdiag.values.measurements import Unit
from memdiag.values.verdict import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How much may be touched for the first time: `Policy.common.touched_bytes` at most, and no
    more than the larger of these two."""

    share: float = number(5e-3, "level", "part of the level, for small processes")
    least_bytes: float = number(2.0**18, "bytes", "what Python's allocator takes at a time")


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth of pages by less than that."""
    prepared, slope = window.view.prepared, window.trend.slope
    rise = slope * window.span_x
    if prepared.role not in PAGES or prepared.unit is not Unit.BYTES or rise <= 0:
        return None
    share = max(parameters.share * prepared.level, parameters.least_bytes)
    most = min(case.policy.common.touched_bytes, share)
    if rise >= most:
        return None
    return Says(
        text="it rose by {rise_y}, and a program without a leak can rise by up to {most_y} as it "
        "first uses memory that it already owns",
        numbers={"rise_y": rise, "most_y": most},
        reason=Reason.FEW_PAGES,
        need_x=(most - rise) / slope,
    )


CHECK = Check(name="first_touch", ask=ask, parameters=Parameters())

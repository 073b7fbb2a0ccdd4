"""Records of a fixed length: growth by equal amounts, until they are full.

torch keeps the last 2,000 collectives of each rank of a distributed job, to show them when one
hangs (`TORCH_FR_BUFFER_SIZE`). At one a step, malloc in use grows for 2,000 steps, longer than
nearly all warm-ups last, and then no more. By its course alone that is a leak; but it is known how
much it comes to: 1.6 MB were measured with gloo and one collective a step, 370 bytes each and a
list that doubles; none with a size of 0. NCCL's entries have stack traces as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import number
from memdiag.values.measurements import Role
from memdiag.values.verdict import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How much such a record takes."""

    most_bytes: float = number(4e6, "bytes", "of a rank: more than twice of what was measured")
    takes: Mapping[Role, float] = number(
        MappingProxyType(
            {Role.IN_USE: 1.0, Role.RESIDENT: 2.0, Role.UNIQUE: 2.0, Role.PROPORTIONAL: 2.0}
        ),
        "1",
        "times as much of a role: pages come in arenas and huge ones, of 2 MB each",
    )


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth of a rank that is no more than that."""
    prepared = case.prepared
    room = case.context.records * parameters.most_bytes * parameters.takes.get(prepared.role, 0.0)
    if room == 0:
        return None
    first = int(np.searchsorted(prepared.x, prepared.x[-1] - window.span_x))
    grown = float(prepared.y[-1] - prepared.y[min(first, window.first_sample) :].min())
    left, slope = room - grown, window.trend.slope
    if left <= 0:
        return None
    return Says(
        text="it grew by {grown_y}, and torch's record of recent collectives can take up to "
        "{room_y} before it is full",
        numbers={"grown_y": grown, "room_y": room},
        reason=Reason.FILLING,
        need_x=left / slope if slope > 0 else None,
    )


CHECK = Check(name="flight_recorder", ask=ask, parameters=Parameters())

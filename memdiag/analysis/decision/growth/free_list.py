"""What an interpreter keeps for use again counts as in use until it is full.

Python's blocks include its free lists, of which that of tuples of one item takes 2,000 (CPython,
Objects/tupleobject.c), one of each backward pass of torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import number
from memdiag.values.verdict import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How much such a pool takes."""

    pools: Mapping[str, float] = number(
        MappingProxyType({"python_blocks": 2000.0}),
        "blocks",
        "growth of a metric that a pool may be",
        "CPython, Objects/tupleobject.c",
    )


def ask(case: Case, window: Window, parameters: Parameters) -> Says | None:
    """Object to growth that such a pool may be."""
    prepared, slope = case.prepared, window.trend.slope
    pool = parameters.pools.get(prepared.metric, 0.0)
    if not 0 < slope * window.view.prepared.run < pool:
        return None
    return Says(
        text="it grew by {grown_y}, and Python keeps up to {pool_y} freed blocks for reuse",
        numbers={"grown_y": slope * window.view.prepared.run, "pool_y": pool},
        reason=Reason.STILL_CLIMBING,
    )


CHECK = Check(name="free_list", ask=ask, parameters=Parameters())

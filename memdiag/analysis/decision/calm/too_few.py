"""So few readings, or so short a time with few of them, show the start of a program alone: its
interpreter and imports.
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import number
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Beside `Policy.common.fewest`."""

    span_s: float = number(2.0, "s", "shortest that few readings may cover")


def ask(case: Case, window: Window | None, parameters: Parameters) -> Says | None:
    """Object to any verdict."""
    x, y, common = case.prepared.x, case.prepared.y, case.policy.common
    readings = {"readings": float(len(y))}
    if len(y) < common.fewest:
        return Says(
            text="there are too few readings ({readings})",
            numbers=readings,
            reason=Reason.TOO_FEW_SAMPLES,
        )
    span = float(x[-1] - x[0])
    brief = case.prepared.axis.kind is AxisKind.SECONDS and span < parameters.span_s
    if not brief or len(y) >= common.few_samples or not y.max() > y.min():
        return None
    return Says(
        text="there are too few readings ({readings} in {span_x})",
        numbers={**readings, "span_x": span},
        reason=Reason.TOO_FEW_SAMPLES,
    )


CHECK = Check(name="too_few", ask=ask, parameters=Parameters())

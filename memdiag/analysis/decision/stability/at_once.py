"""What needs no statistics."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.case import Case, Rule, Window, rule
from memdiag.analysis.parameters import number
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Argument, Reason, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TooFew:
    """Beside `Policy.common.fewest`."""

    span_s: float = number(2.0, "s", "shortest that few readings may cover")


@rule(TooFew())
def too_few(case: Case, window: Window | None, parameters: TooFew) -> Argument | None:
    """So few readings, or so short a time with few of them, cover only the start of a program: its
    interpreter and imports.
    """
    x, y, common = case.prepared.x, case.prepared.y, case.policy.common
    readings = {"readings": float(len(y))}
    if len(y) < common.fewest:
        return Argument(
            text="there are too few readings ({readings})",
            numbers=readings,
            reason=Reason.TOO_FEW_SAMPLES,
        )
    span = float(x[-1] - x[0])
    brief = case.prepared.axis.kind is AxisKind.SECONDS and span < parameters.span_s
    if not brief or len(y) >= common.few_samples or not y.max() > y.min():
        return None
    return Argument(
        text="there are too few readings ({readings} in {span_x})",
        numbers={**readings, "span_x": span},
        reason=Reason.TOO_FEW_SAMPLES,
    )


@Rule
def constant(case: Case, window: Window | None) -> Argument | None:
    """All readings are the same."""
    y = case.prepared.y
    if float(y.max()) > float(y.min()):
        return None
    return Argument(
        text="all {readings} readings are the same",
        numbers={"readings": float(len(y)), "level_y": float(y[0])},
        reason=Reason.FLAT,
        verdict=Verdict.STABLE,
    )

"""What needs no statistics."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Argument, Reason, Verdict


@Rule
def too_few(case: Case, window: Window | None) -> Argument | None:
    """So few readings, or so short a time, cover only the start of a program: its interpreter and
    imports.
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
    if case.prepared.axis.kind is not AxisKind.SECONDS or span >= common.start_s:
        return None
    return Argument(
        text="the recording is too short ({readings} readings in {span_x}): in less than "
        "{least_x}, a program shows little more than its start",
        numbers={**readings, "span_x": span, "least_x": common.start_s},
        reason=Reason.TOO_FEW_SAMPLES,
        need_x=common.start_s - span,
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

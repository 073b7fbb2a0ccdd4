"""What needs no statistics."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Argument, Reason, Verdict


@Rule
def too_few(case: Case, window: Window | None) -> Argument | None:
    """So few readings, or so short a time, cover only the start of a program: its interpreter and
    imports.

    Steps, epochs and requests can show a leak in less. So there only a stable verdict needs that
    time, unless growth over as many of them would be a leak.
    """
    prepared, policy = case.prepared, case.policy
    readings = {"readings": float(len(prepared.y))}
    if len(prepared.y) < policy.common.fewest:
        return Argument(
            text="there are too few readings ({readings})",
            numbers=readings,
            reason=Reason.TOO_FEW_SAMPLES,
        )
    kind, pace = prepared.axis.kind, prepared.seconds_per_x
    if not pace or (case.so_far is None and kind is not AxisKind.SECONDS):
        return None
    shows_leaks_x = policy.prior.warmup_length(kind).outlasting(policy.prior.leak_posterior)
    least_x = min(policy.common.start_s / pace, shows_leaks_x)
    if prepared.run >= least_x:
        return None
    return Argument(
        text="the recording is too short ({readings} readings in {span_x}): in less than "
        "{least_x}, a program shows little more than its start",
        numbers={**readings, "span_x": prepared.run, "least_x": least_x},
        reason=Reason.TOO_FEW_SAMPLES,
        need_x=least_x - prepared.run,
    )


@Rule
def constant(case: Case, window: Window | None) -> Argument | None:
    """All readings are the same."""
    y = case.prepared.y
    if float(y.max()) > float(y.min()):
        return None
    which = "lowest readings of its cycles" if case.prepared.floors else "readings"
    return Argument(
        text=f"all {{readings}} {which} are the same",
        numbers={"readings": float(len(y)), "level_y": float(y[0])},
        reason=Reason.FLAT,
        verdict=Verdict.STABLE,
    )

"""Growth that comes to nothing: over the run's plan, or over a horizon that few runs reach.

A training keeps a little of every step (loss histories, interned objects); a hundred bytes a step
for a million steps are no leak that anybody would look for.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import Policy
from memdiag.analysis.preprocessing.prepare import Prepared
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.verdict import Reason, Verdict


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to growth of next to nothing."""
    prepared, slope = window.view.prepared, window.trend.slope
    horizon, grown, least = weigh(prepared, slope, case.policy, case.context.planned_x)
    if grown >= least:
        return None
    return Says(
        text="it would grow by {grown_y} in {horizon_x}, and less than {least_y} does not matter",
        numbers={"grown_y": grown, "horizon_x": horizon, "least_y": least},
        reason=Reason.NEGLIGIBLE,
        verdict=Verdict.STABLE,
    )


def is_negligible(
    prepared: Prepared, slope: float, policy: Policy, planned_x: float | None
) -> bool:
    """Growth at this slope comes to nothing."""
    _, grown, least = weigh(prepared, slope, policy, planned_x)
    return grown < least


def weigh(
    prepared: Prepared, slope: float, policy: Policy, planned_x: float | None
) -> tuple[float, float, float]:
    """How far is looked ahead, what growth comes to by then, and what would be worth a word."""
    given, kind = policy.materiality, prepared.axis.kind
    horizon = max(policy.horizon(kind), policy.common.fewest * prepared.run)
    if planned_x is not None and len(prepared.x) and planned_x > prepared.x[-1]:
        horizon = float(planned_x - prepared.x[-1])
    grown = max(slope * horizon, float(prepared.y[-1] - prepared.y[0]))
    least = policy.common.calm_growth * prepared.level
    if prepared.unit is Unit.BYTES:
        least = max(least, min(given.least_bytes, policy.common.most * prepared.level))
    if kind is AxisKind.STEP:
        least = max(least, given.background_per_step.get(prepared.role, 0.0) * horizon)
    return horizon, grown, least


CHECK = Check(name="negligible", ask=ask, parameters=SHARED)

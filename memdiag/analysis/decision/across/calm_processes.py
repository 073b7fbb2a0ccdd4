"""Every process of a tree is calm by the same meter, and together they are nearly all of it.

Small steps of each at different times make no growth of the whole.
"""

from __future__ import annotations

from memdiag.analysis.decision.across.meters import Cross, Meters
from memdiag.analysis.decision.case import Says
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.findings import Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Reason


def ask(finding: Finding, meters: Meters, parameters: Shared) -> Says | None:
    """Overrule a leak of a tree, and settle a doubt about it."""
    if finding.process != "tree":
        return None
    alike = [f for f in meters.findings if f.metric == finding.metric]
    parts = [f for f in alike if f.process not in {"", "tree"}]
    number = [f for f in meters.findings if f.role is Role.PROCESSES]
    if len(parts) < 2 or not all(f.verdict in CALM for f in (*parts, *number)):
        return None
    if max(part.samples for part in parts) < finding.samples // 2:
        return None
    nearly_all = (1 - meters.policy.common.little) * finding.latest_value
    if sum(part.latest_value for part in parts) < nearly_all:
        return None
    return Says(
        text="none of the {parts} processes grows, and together they hold nearly all of the memory",
        numbers={"parts": float(len(parts))},
        reason=Reason.OVERRULED,
    )


CHECK = Cross(name="calm_processes", ask=ask, parameters=SHARED)

"""Neither malloc nor Python's blocks grow.

What is left to the pages is the allocator's holes, which the largest working set bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.across.meters import CALM, IN_PART, Cross, Meters
from memdiag.analysis.decision.case import Says
from memdiag.findings import Finding
from memdiag.model import Role
from memdiag.policy import PAGES
from memdiag.verdicts import Reason, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """None of its own."""


def ask(finding: Finding, meters: Meters, parameters: Parameters) -> Says | None:
    """Settle a doubt about pages."""
    if finding.role not in PAGES or finding.reason is Reason.TOO_FEW_SAMPLES:
        return None
    least = meters.policy.across.settling_samples
    known = {
        f.role
        for f in meters.same(finding)
        if f.verdict in CALM and f.samples >= least and f.metric not in IN_PART
    }
    if not {Role.IN_USE, Role.OBJECTS} <= known:
        return None
    return Says(
        text="neither memory in use nor Python's objects grow: what is left is holes",
        reason=Reason.OVERRULED,
        verdict=Verdict.STABLE,
    )


CHECK = Cross(name="exact_and_calm", ask=ask, parameters=Parameters())

"""A meter that was hardly read says nothing against another of the same memory that was."""

from __future__ import annotations

from memdiag.analysis.decision.across.meters import COUNTS, Cross, Meters, name
from memdiag.analysis.decision.case import Says
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.findings import Finding
from memdiag.values.verdict import CALM, Reason, Verdict


def ask(finding: Finding, meters: Meters, parameters: Shared) -> Says | None:
    """Settle a doubt for want of readings."""
    if finding.reason is not Reason.TOO_FEW_SAMPLES:
        return None
    for f in meters.same(finding):
        if f.verdict in CALM and f.role not in COUNTS and f.samples > finding.samples:
            return Says(
                text="another metric of the same memory was read more often and does not grow",
                against=name(f),
                reason=Reason.OVERRULED,
                verdict=Verdict.STABLE,
            )
    return None


CHECK = Cross(name="read_more_often", ask=ask, parameters=SHARED)

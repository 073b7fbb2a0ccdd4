"""Pages of a process alone cannot grow where all its pages do not."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.across.meters import CALM, Cross, Meters, name
from memdiag.analysis.decision.case import Says
from memdiag.findings import Finding
from memdiag.model import Role
from memdiag.verdicts import Reason, Verdict

_BOUNDED = frozenset({Role.UNIQUE, Role.PROPORTIONAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """None."""


def ask(finding: Finding, meters: Meters, parameters: Parameters) -> Says | None:
    """Settle a doubt about USS or PSS."""
    if finding.role not in _BOUNDED or finding.reason is Reason.TOO_FEW_SAMPLES:
        return None
    for f in meters.same(finding):
        if f.role is Role.RESIDENT and f.verdict in CALM and f.samples >= finding.samples:
            return Says(
                text="the resident memory that it is part of does not grow",
                against=name(f),
                reason=Reason.OVERRULED,
                verdict=Verdict.STABLE,
            )
    return None


CHECK = Cross(name="bounding_pages", ask=ask, parameters=Parameters())

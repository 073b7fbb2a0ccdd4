"""Malloc knows all tensors of the host: where it is calm, their bytes are."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.across.meters import CALM, MALLOC, Cross, Meters
from memdiag.analysis.decision.case import Says
from memdiag.findings import Finding
from memdiag.verdicts import Reason, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """None of its own."""


def ask(finding: Finding, meters: Meters, parameters: Parameters) -> Says | None:
    """Settle a doubt about tensors."""
    if finding.reason is Reason.TOO_FEW_SAMPLES or not meters.is_on_host(finding):
        return None
    least = meters.policy.across.settling_samples
    for f in meters.same(finding):
        if f.metric == MALLOC and f.verdict in CALM and f.samples >= least:
            return Says(
                text="memory in use, which holds all tensors of the host, does not grow",
                reason=Reason.OVERRULED,
                verdict=Verdict.STABLE,
            )
    return None


CHECK = Cross(name="host_tensors", ask=ask, parameters=Parameters())

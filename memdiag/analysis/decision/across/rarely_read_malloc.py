"""Too few readings of malloc to tell, and its process is calm by all else.

Its pages where they were read much more often, its pages, objects and tensors else.
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.decision.across.meters import CALM, MALLOC, Cross, Meters
from memdiag.analysis.decision.case import Says
from memdiag.findings import Finding
from memdiag.model import Role
from memdiag.parameters import number
from memdiag.verdicts import Reason, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """When even few readings tell of growth."""

    scatter: float = number(0.05, "level", "growth of malloc over the run that few readings show")


def ask(finding: Finding, meters: Meters, parameters: Parameters) -> Says | None:
    """Settle a doubt about malloc."""
    if finding.metric != MALLOC or finding.reason is not Reason.UNCERTAIN_TREND:
        return None
    least, growth = meters.policy.across.settling_samples, finding.growth_per_x
    known = {f.role for f in meters.same(finding) if f.verdict in CALM and f.samples >= least}
    if Role.RESIDENT not in known or growth is None:
        return None
    way = (finding.last_x - finding.first_x) * growth.value
    if growth.low > 0 and way > parameters.scatter * finding.peak_value:
        return None
    if finding.samples >= least and not {Role.OBJECTS, Role.TENSORS} <= known:
        return None
    return Says(
        text="it was read {readings} times, and nothing else of its process grows",
        numbers={"readings": float(finding.samples)},
        reason=Reason.OVERRULED,
        verdict=Verdict.STABLE,
    )


CHECK = Cross(name="rarely_read_malloc", ask=ask, parameters=Parameters())

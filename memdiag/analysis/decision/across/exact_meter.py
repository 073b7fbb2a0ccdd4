"""A coarse meter that rises with a leaking exact one leaks; one that hides it is not calm."""

from __future__ import annotations

from dataclasses import replace

from memdiag.analysis.decision.across.allocator_metrics import rise
from memdiag.analysis.decision.across.meters import Cross, Meters, name
from memdiag.analysis.decision.case import Says
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.findings import Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Reason, Verdict

# An exact meter and the coarse ones that its memory is part of.
PART_OF = {
    Role.IN_USE: (Role.RESIDENT, Role.UNIQUE, Role.PROPORTIONAL),
    Role.DEVICE_ALLOCATED: (Role.DEVICE, Role.DEVICE_RESERVED),
}


def ask(finding: Finding, meters: Meters, parameters: Shared) -> Says | None:
    """Confirm the leak, or object to calm."""
    exact = _leaking_part(finding, meters)
    if exact is None:
        return None
    if _rises_with(finding, exact, meters):
        return Says(
            text="it grows together with a metric that counts memory in it exactly and leaks",
            against=name(exact),
            reason=Reason.EXACT_METRIC,
            verdict=Verdict.LEAK,
        )
    return Says(
        text="a metric that counts memory in it exactly leaks, which it does not show",
        reason=Reason.OVERRULED,
        against=name(exact),
    )


def _leaking_part(finding: Finding, meters: Meters) -> Finding | None:
    """The first leaking exact meter that has something to say to it."""
    if finding.verdict is Verdict.LEAK:
        return None
    for other in meters.same(finding):
        part = finding.role in PART_OF.get(other.role, ()) and other.axis == finding.axis
        if not part or other.verdict is not Verdict.LEAK:
            continue
        if finding.verdict in CALM or _rises_with(finding, other, meters):
            return other
    return None


def _rises_with(finding: Finding, exact: Finding, meters: Meters) -> bool:
    policy = meters.policy
    least = policy.common.most * rise(exact, exact, policy)
    return rise(finding, exact, policy) >= least


def change(finding: Finding, meters: Meters, parameters: Shared) -> Finding:
    """The finding, with what it borrows of the exact meter."""
    exact = _leaking_part(finding, meters)
    assert exact is not None
    if not _rises_with(finding, exact, meters):
        return replace(finding, verdict=Verdict.INCONCLUSIVE, reason=Reason.OVERRULED, plateau=None)
    return replace(
        _without_rate(finding),
        verdict=Verdict.LEAK,
        reason=Reason.EXACT_METRIC,
        confidence=min(exact.confidence, meters.policy.reporting.borrowed_confidence),
        onset_x=exact.onset_x,
        plateau=None,
        need_more=None,
    )


def _without_rate(finding: Finding) -> Finding:
    """Of pages that were given back in the end, the last rate is not that of what leaks."""
    rate = finding.growth_per_x
    if rate is None or rate.low > 0:
        return finding
    return replace(finding, growth_per_x=None, growth_per_s=None, growth_per_epoch=None)


CHECK = Cross(name="exact_meter", ask=ask, parameters=SHARED, change=change)
